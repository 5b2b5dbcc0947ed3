//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

const (
	limitTime      = 3 * time.Second // of each disk measurement
	bandwidthBytes = 512 << 20
	bandwidthWrite = 1 << 20
)

// benchLimits measures what no server on this machine can beat: the disk's syncs and bandwidth, the
// loopback, and a bare Go server.
func benchLimits(ctx context.Context, s *settings) {
	var list []reading
	note := func(row, what string, v float64) {
		list = append(list, reading{row, what, machineItself, once(v)})
		progress("limits: %s, %s: %s", row, what, number(v))
	}
	syncLimits(note)
	bandwidth(note)
	loopback, round, done := loopbackRound()
	defer must.Finally(done)
	h, _ := timeFor(round, limitTime)
	note(loopback, "p50 µs", float64(h.quantile(0.5))/1e3)
	note(loopback, "p99 µs", float64(h.quantile(0.99))/1e3)
	s.out.report("limits", "The disk and the loopback alone", list)
	bareLimits(ctx, s)
}

// machineItself stands for the server in readings of the machine.
const machineItself = "machine"

// syncLimits times the syncs of a zero-filled file and of a growing file.
func syncLimits(note func(row, what string, v float64)) {
	filled := zeroedFile()
	defer must.Finally(removing(filled))
	growing := must.Get(os.CreateTemp("", "gozkd-bench-sync-"))
	defer must.Finally(removing(growing))
	const endless = 1 << 40
	for _, f := range []struct {
		name string
		file *os.File
		size int64
	}{{"fdatasync, file filled with zeros before", filled, syncFileBytes}, {"fdatasync, file that grows", growing, endless}} {
		h, cpu := timeFor(syncsOf(f.file, f.size), limitTime)
		note(f.name, "per second", float64(h.n())/limitTime.Seconds())
		note(f.name, "p50 µs", float64(h.quantile(0.5))/1e3)
		note(f.name, "p99 µs", float64(h.quantile(0.99))/1e3)
		note(f.name, "CPU µs", cpu.Seconds()*1e6/float64(h.n()))
	}
}

// timeFor calls once repeatedly for d. It returns the durations and the calling thread's CPU time.
func timeFor(once func() error, d time.Duration) (*histogram, time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	h := new(histogram)
	before := threadCPU()
	for start, last := time.Now(), time.Now(); ; {
		must.Do(once())
		now := time.Now()
		h.note(now.Sub(last))
		if last = now; now.Sub(start) >= d {
			return h, threadCPU() - before
		}
	}
}

// bandwidth writes a file sequentially and syncs the file once.
func bandwidth(note func(row, what string, v float64)) {
	f := must.Get(os.CreateTemp("", "gozkd-bench-sync-"))
	defer must.Finally(removing(f))
	b := make([]byte, bandwidthWrite)
	for i := range b {
		b[i] = byte(i)
	}
	start := time.Now()
	for range bandwidthBytes / bandwidthWrite {
		must.Get(f.Write(b))
	}
	must.Do(unix.Fdatasync(int(f.Fd())))
	took := time.Since(start)
	note(fmt.Sprintf("write %d MiB in order, fdatasync", bandwidthBytes>>20), "MB per second", bandwidthBytes/1e6/took.Seconds())
}

// bareFile names the files with the bare server's figures.
const bareFile = "limits-bare"

// bareSynced is appended to the names of rows in which the bare server syncs.
const bareSynced = ", synced"

// bareLimits puts the get and set rows on bare servers.
func bareLimits(ctx context.Context, s *settings) {
	var all []comparison
	for _, b := range []struct{ command, row, suffix string }{
		{"bare", "get 100 B", ""}, {"bare", "set 100 B", ""}, {"bare-synced", "set 100 B", bareSynced},
	} {
		func() {
			process := startSelf(b.command)
			defer must.Finally(process.stop)
			t := target{name: "bare server", addrs: []string{process.addr}, pids: []int{process.pid}}
			for _, c := range compareRows(ctx, s, chosen(workloads(), b.row), []target{t}, time.Second) {
				c.Row += b.suffix
				all = append(all, c)
			}
		}()
	}
	must.Do(s.out.comparisons(bareFile, fmt.Sprintf("median of %d rounds of %s", s.rounds, s.seconds), all))
}
