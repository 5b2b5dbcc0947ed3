//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// diskUse is what the kernel counted: bytes that processes wrote to disks, and how often the disk below dir was told to
// make its cache durable, by whomever.
type diskUse struct{ bytes, syncs int64 }

func (u diskUse) since(before diskUse) diskUse {
	return diskUse{u.bytes - before.bytes, u.syncs - before.syncs}
}

// diskUseOf reads the counters of /proc.
func diskUseOf(pids []int, dir string) (u diskUse, err error) {
	for _, pid := range pids {
		name := fmt.Sprintf("/proc/%d/io", pid)
		b, err := os.ReadFile(name)
		if err != nil {
			return u, err
		}
		n, err := field(string(b), "write_bytes: ", name)
		if err != nil {
			return u, err
		}
		u.bytes += n
	}
	u.syncs, err = flushes(dir)
	return u, err
}

func field(text, key, file string) (int64, error) {
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(line, key); ok {
			return strconv.ParseInt(strings.TrimSpace(v), 10, 64)
		}
	}
	return 0, fmt.Errorf("%s has no %q", file, key)
}

// flushes returns how many flush requests the disk below dir has completed, the 16th counter of /proc/diskstats.
func flushes(dir string) (int64, error) {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return 0, fmt.Errorf("stat %s: %w", dir, err)
	}
	const name, counters = "/proc/diskstats", 16
	b, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 3+counters || f[0] != fmt.Sprint(unix.Major(st.Dev)) || f[1] != fmt.Sprint(unix.Minor(st.Dev)) {
			continue
		}
		return strconv.ParseInt(f[2+counters], 10, 64)
	}
	return 0, errors.New(name + ": the disk of " + dir + " is not there, or the kernel counts no flushes")
}
