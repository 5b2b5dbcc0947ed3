//go:build linux

package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// bareSynced is appended to the names of rows in which the bare server syncs.
const bareSynced = ", synced"

// benchLimits puts the get and set rows on bare servers, which no server on this machine can beat.
func benchLimits(ctx context.Context, s *settings) {
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
	s.out.comparisons("limits", all)
}

// self is a process of this program: a server that prints its address and ends with its input.
type self struct {
	addr string
	pid  int
	stop func() error
}

func startSelf(command string) *self {
	cmd := exec.Command(must.Get(os.Executable()), command)
	cmd.Stderr = os.Stderr
	in, out := must.Get(cmd.StdinPipe()), must.Get(cmd.StdoutPipe())
	must.Do(cmd.Start())
	stop := func() error { return errors.Join(in.Close(), cmd.Wait()) }
	line := make([]byte, 64)
	n, err := out.Read(line)
	if err != nil {
		must.Do(errors.Join(err, stop()))
	}
	return &self{addr: strings.TrimSpace(string(line[:n])), pid: cmd.Process.Pid, stop: stop}
}

// syncFileBytes is the size of the bare server's log, which is written again and again.
const syncFileBytes = 64 << 20

// zeroedFile returns a new file of syncFileBytes zeros, synced, which the caller removes.
func zeroedFile() *os.File {
	f := must.Get(os.CreateTemp("", "gozkd-bench-sync-"))
	_, err := f.Write(make([]byte, syncFileBytes))
	if err = errors.Join(err, f.Sync()); err != nil {
		must.Do(errors.Join(err, removing(f)()))
	}
	return f
}

// removing returns a function that closes and removes a file.
func removing(f *os.File) func() error {
	return func() error { return errors.Join(f.Close(), os.Remove(f.Name())) }
}
