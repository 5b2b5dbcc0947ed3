//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gozkd/gozkd/test/compat/server"
)

const (
	idleTime = 4 * time.Second // how long the CPU time of an idle server is counted
	// spareFiles are the descriptors that a process needs besides its connections.
	spareFiles = 500
)

func sessionsPiece() growthPiece {
	return growthPiece{
		name: "sessions", title: "Growth with idle sessions", axis: "idle sessions", unit: "session",
		sizes:   []int{10, 100, 1_000, 10_000, 20_000},
		upTo:    connectionsUpTo,
		measure: growSessions,
		rates:   true,
		note: fmt.Sprintf("Each session has a connection and sends nothing, no pings either. Memory is at once after the last was opened. "+
			"One more client sets znodes of 100 bytes, one at a time; 16 more read them. CPU at rest is what the server uses after that, in %s without any request.", idleTime),
	}
}

// connectionsUpTo raises the limit on open files for this process and its children, and returns how
// many connections the limit allows.
func connectionsUpTo() (int, string) {
	const want = 65_536
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		panic("bench: getrlimit: " + err.Error()) // getrlimit cannot fail with these arguments
	}
	// Through package syscall, because the runtime keeps the limit of child processes there.
	raised := syscall.Rlimit{Cur: max(l.Cur, want), Max: max(l.Max, want)}
	if syscall.Setrlimit(syscall.RLIMIT_NOFILE, &raised) != nil { // exceeding the hard limit needs a privilege
		raised = syscall.Rlimit{Cur: l.Max, Max: l.Max}
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &raised); err != nil {
			raised = l
		}
	}
	return int(raised.Cur) - spareFiles, fmt.Sprintf("a process may have %s files open here", thousands(float64(raised.Cur)))
}

func growSessions(ctx context.Context, g *growth, k kind, size int) error {
	return g.serve(ctx, k, server.Options{}, func(p *server.Process) error {
		t := targetOf(p)
		if err := fillMany(ctx, p.Addr(), nData, payload); err != nil {
			return err
		}
		before, err := memoryOf(p.Pid())
		if err != nil {
			return err
		}
		idle, err := openIdle(ctx, p.Addr(), size)
		if err != nil {
			return finally(err, func() error { return closeIdle(idle) })
		}
		return finally(growBesides(ctx, g, t, size, before), func() error { return closeIdle(idle) })
	})
}

// growBesides measures a server beside its idle sessions. before is the server's memory without
// sessions.
func growBesides(ctx context.Context, g *growth, t target, size int, before memory) error {
	after, err := g.noteMemory(t, size)
	if err != nil {
		return err
	}
	g.noteEach(t, size, "session", before, after)
	get, set := getMany(nData), setMany(nData)
	if err := g.warm(ctx, t, get, set); err != nil {
		return err
	}
	if err := g.load(ctx, t, size, shape{1, 1}, set); err != nil {
		return err
	}
	if err := g.load(ctx, t, size, shape{16, 16}, get); err != nil {
		return err
	}
	if err := awaitIdle(ctx, t.pids); err != nil {
		return err
	}
	cpu, err := restCPU(ctx, t.pids[0])
	if err != nil {
		return err
	}
	g.note("CPU at rest", "ms/s", "in all", t.name, size, cpu)
	progress("growth: %s %s: %s: %.2f ms of CPU per second at rest", g.piece.name, thousands(float64(size)), t.name, cpu)
	return nil
}

// restCPU returns the CPU use of an idle process, in milliseconds per second.
func restCPU(ctx context.Context, pid int) (float64, error) {
	before, err := preciseCPU(pid)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	if !sleep(ctx, idleTime) {
		return 0, ctx.Err()
	}
	after, err := preciseCPU(pid)
	return (after - before).Seconds() * 1e3 / time.Since(start).Seconds(), err
}

// openIdle opens n sessions that hold nothing but their sockets. After an error it returns the
// sessions that are open.
func openIdle(ctx context.Context, addr string, n int) ([]*client, error) {
	const openers = 16 // in parallel, because each open waits for a sync
	opened := make([][]*client, openers)
	failed := make([]error, openers)
	var wait sync.WaitGroup
	for o := range openers {
		// Ends with its share of the sessions, or with ctx; awaited below.
		wait.Go(func() {
			for i := o; i < n; i += openers {
				if ctx.Err() != nil {
					failed[o] = ctx.Err()
					return
				}
				c, err := dial(addr, i, 1)
				if err != nil {
					failed[o] = fmt.Errorf("session %d: %w", i, err)
					return
				}
				c.in, c.out = make([]byte, 256), nil
				c.r, c.w = 0, 0
				opened[o] = append(opened[o], c)
			}
		})
	}
	wait.Wait()
	return slices.Concat(opened...), errors.Join(failed...)
}

// closeIdle closes the sockets; the sessions stay.
func closeIdle(clients []*client) (err error) {
	for _, c := range clients {
		err = errors.Join(err, unix.Close(c.fd))
	}
	return err
}
