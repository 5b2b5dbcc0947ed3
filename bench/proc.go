//go:build linux

package main

import (
	"time"

	"github.com/prometheus/procfs"
	"github.com/prometheus/procfs/blockdevice"
	"golang.org/x/sys/unix"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// cpuOf returns the user and system time of all processes together, each to 1/100 s.
func cpuOf(pids []int) (sum time.Duration) {
	for _, pid := range pids {
		sum += cpuOfOne(pid)
	}
	return sum
}

func cpuOfOne(pid int) time.Duration {
	return time.Duration(must.Get(must.Get(procfs.NewProc(pid)).Stat()).CPUTime() * float64(time.Second))
}

// ownCPU returns the same for this process, to the microsecond.
func ownCPU() time.Duration {
	var u unix.Rusage
	must.Do(unix.Getrusage(unix.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// memory holds fields of /proc/PID/status, in bytes.
type memory struct {
	rss, peak int64 // VmRSS, VmHWM
}

// memoryOf adds up the memory of processes.
func memoryOf(pids ...int) (sum memory) {
	for _, pid := range pids {
		s := must.Get(must.Get(procfs.NewProc(pid)).NewStatus())
		sum.rss += int64(s.VmRSS)
		sum.peak += int64(s.VmHWM)
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
func diskUseBelow(dir string) diskUse {
	const sectorBytes, withFlushes = 512, 20 // fields of a line
	var st unix.Stat_t
	must.Do(unix.Stat(dir, &st))
	for _, d := range must.Get(must.Get(blockdevice.NewDefaultFS()).ProcDiskstats()) {
		if d.MajorNumber == unix.Major(st.Dev) && d.MinorNumber == unix.Minor(st.Dev) && d.IoStatsCount >= withFlushes {
			return diskUse{int64(d.WriteSectors) * sectorBytes, int64(d.FlushRequestsCompleted)}
		}
	}
	must.Failf("/proc/diskstats: the disk of %s is not there, or the kernel counts no flushes", dir)
	return diskUse{}
}

// preciseCPU returns the run time of a process's live threads, to the nanosecond.
func preciseCPU(pid int) (sum time.Duration) {
	for _, thread := range must.Get(procfs.AllThreads(pid)) {
		if s, err := thread.Schedstat(); err == nil { // otherwise the thread has ended
			sum += time.Duration(s.RunningNanoseconds)
		}
	}
	if sum == 0 {
		must.Failf("/proc/%d/task has no schedstat: is the process there, and does the kernel count it?", pid)
	}
	return sum
}
