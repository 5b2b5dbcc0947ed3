//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gozkd/gozkd/internal/testkit/must"
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

func growSessions(ctx context.Context, g *growth, k kind, size int) {
	g.serve(ctx, k, server.Options{}, func(p *server.Process) {
		t := targetOf(p)
		fillMany(ctx, p.Addr(), nData, payload)
		before := memoryOf(p.Pid())
		idle := openIdle(ctx, p.Addr(), size, idleOpeners)
		defer must.Finally(func() error { return closeIdle(idle) })
		growBesides(ctx, g, t, size, before)
	})
}

// abandonedPiece grows beyond the limit on open files.
func abandonedPiece() growthPiece {
	return growthPiece{
		name: "abandoned", title: "Growth with sessions whose client is gone", axis: "abandoned sessions", unit: "session",
		sizes:   []int{10, 1_000, 10_000, 100_000, 1_000_000},
		measure: growAbandoned,
		rates:   true,
		note: fmt.Sprintf("Each session was opened and its connection closed; none expires during the measurement. "+
			"One client sets znodes of 100 bytes, one at a time; 16 read them. CPU at rest is what the server uses after that, in %s without any request.", idleTime),
	}
}

func growAbandoned(ctx context.Context, g *growth, k kind, size int) {
	g.serve(ctx, k, server.Options{}, func(p *server.Process) {
		t := targetOf(p)
		fillMany(ctx, p.Addr(), nData, payload)
		before := memoryOf(p.Pid())
		const atOnce = 500 // below any limit on open files
		for opened := 0; opened < size; opened += atOnce {
			must.Do(closeIdle(openIdle(ctx, p.Addr(), min(atOnce, size-opened), idleOpeners)))
		}
		growBesides(ctx, g, t, size, before)
	})
}

// growBesides measures a server beside its idle sessions. before is the server's memory without
// sessions.
func growBesides(ctx context.Context, g *growth, t target, size int, before memory) {
	after := g.noteMemory(t, size)
	g.noteEach(t, size, "session", before, after)
	get, set := getMany(nData), setMany(nData)
	g.warm(ctx, t, get, set)
	g.load(ctx, t, size, shape{1, 1}, set)
	g.load(ctx, t, size, shape{16, 16}, get)
	awaitIdle(ctx, t.pids)
	cpu := restCPU(ctx, t.pids[0])
	g.note("CPU at rest", "ms/s", "in all", t.name, size, cpu)
	progress("growth: %s %s: %s: %.2f ms of CPU per second at rest", g.piece.name, thousands(float64(size)), t.name, cpu)
}

// restCPU returns the CPU use of an idle process, in milliseconds per second.
func restCPU(ctx context.Context, pid int) float64 {
	before, start := preciseCPU(pid), time.Now()
	pause(ctx, idleTime)
	return (preciseCPU(pid) - before).Seconds() * 1e3 / time.Since(start).Seconds()
}

// idleOpeners open sessions in parallel, because each open waits for a sync.
const idleOpeners = 16

// openIdle opens n sessions that hold nothing but their sockets, openers at a time.
func openIdle(ctx context.Context, addr string, n, openers int) []*client {
	opened := make([][]*client, openers)
	var works []func()
	for o := range openers {
		works = append(works, func() {
			for i := o; i < n; i += openers {
				must.Do(ctx.Err())
				c := must.Get(dial(addr, i, 1))
				c.in, c.out = make([]byte, 256), nil
				c.r, c.w = 0, 0
				opened[o] = append(opened[o], c)
			}
		})
	}
	err := must.Try(func() { must.All(works...) })
	all := slices.Concat(opened...)
	if err != nil {
		must.Do(errors.Join(err, closeIdle(all)))
	}
	return all
}

// closeIdle closes the sockets; the sessions stay.
func closeIdle(clients []*client) (err error) {
	for _, c := range clients {
		err = errors.Join(err, unix.Close(c.fd))
	}
	return err
}
