//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

const (
	limitTime      = 3 * time.Second // of each disk measurement
	bandwidthBytes = 512 << 20
	bandwidthWrite = 1 << 20
)

// benchLimits measures what no server on this machine can beat: the disk's syncs and bandwidth, the
// loopback, and a bare Go server.
func benchLimits(ctx context.Context, s *settings) error {
	var table [][]string
	var list []reading
	note := func(row, what string, v float64) {
		table = append(table, []string{row, what, number(v)})
		list = append(list, reading{row, what, machineItself, once(v)})
		progress("limits: %s, %s: %s", row, what, number(v))
	}
	if err := syncLimits(note); err != nil {
		return err
	}
	if err := bandwidth(note); err != nil {
		return err
	}
	loopback, round, done, err := loopbackRound()
	if err != nil {
		return err
	}
	h, _, err := timeFor(round, limitTime)
	if err := errors.Join(err, done()); err != nil {
		return err
	}
	note(loopback, "p50 µs", float64(h.quantile(0.5))/1e3)
	note(loopback, "p99 µs", float64(h.quantile(0.99))/1e3)
	s.out.table("The disk and the loopback alone", []string{"what", "quantity", "value"}, table)
	if err := s.out.readings("limits", list); err != nil {
		return err
	}
	return bareLimits(ctx, s)
}

// machineItself stands for the server in readings of the machine.
const machineItself = "machine"

// syncLimits times the syncs of a zero-filled file and of a growing file.
func syncLimits(note func(row, what string, v float64)) error {
	filled, err := zeroedFile()
	if err != nil {
		return err
	}
	growing, err := os.CreateTemp("", "gozkd-bench-sync-")
	if err != nil {
		return errors.Join(err, filled.Close(), os.Remove(filled.Name()))
	}
	const endless = 1 << 40
	for _, f := range []struct {
		name string
		once func() error
	}{{"fdatasync, file filled with zeros before", syncsOf(filled, syncFileBytes)}, {"fdatasync, file that grows", syncsOf(growing, endless)}} {
		h, cpu, timeErr := timeFor(f.once, limitTime)
		if err = timeErr; err != nil {
			break
		}
		note(f.name, "per second", float64(h.n())/limitTime.Seconds())
		note(f.name, "p50 µs", float64(h.quantile(0.5))/1e3)
		note(f.name, "p99 µs", float64(h.quantile(0.99))/1e3)
		note(f.name, "CPU µs", cpu.Seconds()*1e6/float64(h.n()))
	}
	for _, f := range []*os.File{filled, growing} {
		err = errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	return err
}

// timeFor calls once repeatedly for d. It returns the durations and the calling thread's CPU time.
func timeFor(once func() error, d time.Duration) (*histogram, time.Duration, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	h := new(histogram)
	before := threadCPU()
	for start, last := time.Now(), time.Now(); ; {
		if err := once(); err != nil {
			return nil, 0, err
		}
		now := time.Now()
		h.note(now.Sub(last))
		if last = now; now.Sub(start) >= d {
			return h, threadCPU() - before, nil
		}
	}
}

// threadCPU is ownCPU for the calling thread.
func threadCPU() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &u); err != nil {
		panic("bench: getrusage of oneself: " + err.Error()) // as in ownCPU
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// bandwidth writes a file sequentially and syncs the file once.
func bandwidth(note func(row, what string, v float64)) error {
	f, err := os.CreateTemp("", "gozkd-bench-sync-")
	if err != nil {
		return err
	}
	b := make([]byte, bandwidthWrite)
	for i := range b {
		b[i] = byte(i)
	}
	start := time.Now()
	for range bandwidthBytes / bandwidthWrite {
		if _, err = f.Write(b); err != nil {
			break
		}
	}
	err = errors.Join(err, unix.Fdatasync(int(f.Fd())))
	took := time.Since(start)
	if err := errors.Join(err, f.Close(), os.Remove(f.Name())); err != nil {
		return err
	}
	note(fmt.Sprintf("write %d MiB in order, fdatasync", bandwidthBytes>>20), "MB per second", bandwidthBytes/1e6/took.Seconds())
	return nil
}

// bareFile names the files with the bare server's figures.
const bareFile = "limits-bare"

// bareSynced is appended to the names of rows in which the bare server syncs.
const bareSynced = ", synced"

// bareLimits puts the get and set rows on bare servers.
func bareLimits(ctx context.Context, s *settings) error {
	var all []comparison
	for _, b := range []struct{ command, row, suffix string }{
		{"bare", "get 100 B", ""}, {"bare", "set 100 B", ""}, {"bare-synced", "set 100 B", bareSynced},
	} {
		rows, err := chosen(b.row)
		if err != nil {
			return err
		}
		process, err := startSelf(b.command)
		if err != nil {
			return err
		}
		t := target{name: "bare server", addrs: []string{process.addr}, pids: []int{process.pid}}
		more, err := compareRows(ctx, s, rows, []target{t}, time.Second)
		if err := errors.Join(err, process.stop()); err != nil {
			return err
		}
		for _, c := range more {
			c.Row += b.suffix
			all = append(all, c)
		}
	}
	return s.out.comparisons(bareFile, fmt.Sprintf("median of %d rounds of %s", s.rounds, s.seconds), all)
}
