//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// userHz is the unit of times in /proc/PID/stat, 1/100 s on every architecture that Go supports.
const userHz = 100

// cpuOf returns the user and system time of all processes together, each to 1/100 s.
func cpuOf(pids []int) (sum time.Duration, err error) {
	for _, pid := range pids {
		used, err := cpuOfOne(pid)
		if err != nil {
			return 0, err
		}
		sum += used
	}
	return sum, nil
}

func cpuOfOne(pid int) (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The second field, the command in parentheses, may contain anything; utime and stime are
	// fields 14 and 15.
	_, rest, _ := strings.Cut(string(b[max(strings.LastIndexByte(string(b), ')'), 0):]), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat has an unknown form: %q", pid, b)
	}
	var ticks int64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/%d/stat: %w", pid, err)
		}
		ticks += n
	}
	return time.Duration(ticks) * (time.Second / userHz), nil
}

// ownCPU returns the same for this process, to the microsecond.
func ownCPU() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		panic("bench: getrusage of oneself: " + err.Error()) // getrusage cannot fail with these arguments
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// memory holds fields of /proc/PID/status, in bytes.
type memory struct {
	rss, anon, file, peak int64 // VmRSS, RssAnon, RssFile, VmHWM
}

func memoryOf(pid int) (memory, error) {
	var m memory
	name := fmt.Sprintf("/proc/%d/status", pid)
	b, err := os.ReadFile(name)
	if err != nil {
		return m, err
	}
	want := map[string]*int64{"VmRSS": &m.rss, "RssAnon": &m.anon, "RssFile": &m.file, "VmHWM": &m.peak}
	for line := range strings.Lines(string(b)) {
		key, value, _ := strings.Cut(line, ":")
		p := want[key]
		if p == nil {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err != nil {
			return m, fmt.Errorf("%s: %w", name, err)
		}
		*p = kib << 10
		delete(want, key)
	}
	if len(want) > 0 {
		return m, fmt.Errorf("%s has an unknown form", name)
	}
	return m, nil
}

func memoryOfAll(pids []int) (sum memory, err error) {
	for _, pid := range pids {
		m, err := memoryOf(pid)
		if err != nil {
			return sum, err
		}
		sum.rss += m.rss
		sum.anon += m.anon
		sum.file += m.file
		sum.peak += m.peak
	}
	return sum, nil
}

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
