//go:build linux

package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// userHz is the unit of times in /proc/PID/stat, 1/100 s on every architecture that Go supports.
const userHz = 100

// cpuOf returns the user and system time of all processes together, each to 1/100 s.
func cpuOf(pids []int) (sum time.Duration) {
	for _, pid := range pids {
		sum += cpuOfOne(pid)
	}
	return sum
}

func cpuOfOne(pid int) time.Duration {
	b := must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)))
	// The second field, the command in parentheses, may contain anything; utime and stime are
	// fields 14 and 15.
	_, rest, _ := strings.Cut(string(b[max(strings.LastIndexByte(string(b), ')'), 0):]), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		must.Failf("/proc/%d/stat has an unknown form: %q", pid, b)
	}
	var ticks int64
	for _, f := range fields[11:13] {
		ticks += must.Get(strconv.ParseInt(f, 10, 64))
	}
	return time.Duration(ticks) * (time.Second / userHz)
}

// ownCPU returns the same for this process, to the microsecond.
func ownCPU() time.Duration { return rusage(unix.RUSAGE_SELF) }

// threadCPU is ownCPU for the calling thread.
func threadCPU() time.Duration { return rusage(unix.RUSAGE_THREAD) }

func rusage(who int) time.Duration {
	var u unix.Rusage
	must.Do(unix.Getrusage(who, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// memory holds fields of /proc/PID/status, in bytes.
type memory struct {
	rss, anon, file, peak int64 // VmRSS, RssAnon, RssFile, VmHWM
}

func memoryOf(pid int) memory {
	var m memory
	name := fmt.Sprintf("/proc/%d/status", pid)
	b := must.Get(os.ReadFile(name))
	want := map[string]*int64{"VmRSS": &m.rss, "RssAnon": &m.anon, "RssFile": &m.file, "VmHWM": &m.peak}
	for line := range strings.Lines(string(b)) {
		key, value, _ := strings.Cut(line, ":")
		p := want[key]
		if p == nil {
			continue
		}
		*p = must.Get(strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)) << 10
		delete(want, key)
	}
	if len(want) > 0 {
		must.Failf("%s has an unknown form", name)
	}
	return m
}

func memoryOfAll(pids []int) (sum memory) {
	for _, pid := range pids {
		m := memoryOf(pid)
		sum.rss += m.rss
		sum.anon += m.anon
		sum.file += m.file
		sum.peak += m.peak
	}
	return sum
}

// diskUse holds the kernel's counters of a disk, for all processes: bytes written and cache
// flushes. The counters of a process (write_bytes in /proc/PID/io) are useless here: a change of a
// few bytes counts as a whole large page.
type diskUse struct{ bytes, syncs int64 }

func (u diskUse) since(before diskUse) diskUse {
	return diskUse{u.bytes - before.bytes, u.syncs - before.syncs}
}

// diskUseBelow reads the counters of the disk that dir is on.
func diskUseBelow(dir string) (u diskUse) {
	var st unix.Stat_t
	must.Do(unix.Stat(dir, &st))
	const (
		name                   = "/proc/diskstats"
		device                 = 3 // fields before the counters
		sectors, flushes       = 7, 16
		sectorBytes      int64 = 512
	)
	b := must.Get(os.ReadFile(name))
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < device+flushes || f[0] != fmt.Sprint(unix.Major(st.Dev)) || f[1] != fmt.Sprint(unix.Minor(st.Dev)) {
			continue
		}
		u.bytes = must.Get(strconv.ParseInt(f[device+sectors-1], 10, 64)) * sectorBytes
		u.syncs = must.Get(strconv.ParseInt(f[device+flushes-1], 10, 64))
		return u
	}
	must.Failf("%s: the disk of %s is not there, or the kernel counts no flushes", name, dir)
	return u
}
