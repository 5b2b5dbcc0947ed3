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

// diskUse holds the kernel's counters of a disk, for all processes: bytes written and cache
// flushes. The counters of a process (write_bytes in /proc/PID/io) are useless here: a change of a
// few bytes counts as a whole large page.
type diskUse struct{ bytes, syncs int64 }

func (u diskUse) since(before diskUse) diskUse {
	return diskUse{u.bytes - before.bytes, u.syncs - before.syncs}
}

// diskUseBelow reads the counters of the disk that dir is on.
func diskUseBelow(dir string) (u diskUse, err error) {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return u, fmt.Errorf("stat %s: %w", dir, err)
	}
	const (
		name                   = "/proc/diskstats"
		device                 = 3 // fields before the counters
		sectors, flushes       = 7, 16
		sectorBytes      int64 = 512
	)
	b, err := os.ReadFile(name)
	if err != nil {
		return u, err
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < device+flushes || f[0] != fmt.Sprint(unix.Major(st.Dev)) || f[1] != fmt.Sprint(unix.Minor(st.Dev)) {
			continue
		}
		written, err := strconv.ParseInt(f[device+sectors-1], 10, 64)
		if err != nil {
			return u, fmt.Errorf("%s: %w", name, err)
		}
		u.bytes = written * sectorBytes
		if u.syncs, err = strconv.ParseInt(f[device+flushes-1], 10, 64); err != nil {
			return u, fmt.Errorf("%s: %w", name, err)
		}
		return u, nil
	}
	return u, errors.New(name + ": the disk of " + dir + " is not there, or the kernel counts no flushes")
}
