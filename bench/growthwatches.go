//go:build linux

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/test/compat/server"
)

const (
	watchingConnections = 10
	watchedZnodes       = 100_000
	// quietPath is a znode that nobody watches.
	quietPath = "/quiet"
)

func watchesPiece() growthPiece {
	return growthPiece{
		name: "watches", title: "Growth with watches of few connections", axis: "watches", unit: "watch",
		sizes:   []int{1, 100, 10_000, 100_000, 1_000_000},
		measure: growWatches,
		upTo:    func() (int, string) { return watchingConnections * watchedZnodes, "more are not prepared" },
		note: fmt.Sprintf("Each of %d connections watches as many of %s empty znodes as it takes. ", watchingConnections, thousands(watchedZnodes)) + watchesNote +
			"A connection is one of them, with its tenth of the watches.",
	}
}

func watchersPiece() growthPiece {
	return growthPiece{
		name: "watchers", title: "Growth with connections that watch one znode", axis: "connections with a watch each", unit: "watch",
		sizes:   []int{10, 1_000, 10_000, 20_000},
		measure: growWatchers,
		upTo:    connectionsUpTo,
		note:    "Memory for each is beyond that of its session. " + watchesNote + "The connection has one watch.",
	}
}

const watchesNote = "Set is of a znode that nobody watches, one at a time. Longest set while one goes: the longest of these within 0.6 s while a session with watches is closed. " +
	"CPU to remove it is what the server used for closing another, in half a second. "

func growWatches(ctx context.Context, g *growth, k kind, size int) {
	g.serve(ctx, k, server.Options{}, func(p *server.Process) {
		t := targetOf(p)
		fillOne(p.Addr(), quietPath)
		fillMany(ctx, p.Addr(), watchedZnodes, nil)
		l := openLoad(t.addrs, watchingConnections, 64)
		gone := 0
		closeRest := func() error {
			l.clients = l.clients[gone:]
			return l.close()
		}
		defer must.Finally(closeRest)
		before := memoryOf(p.Pid())
		begun := time.Now()
		w := &workload{name: "watch", replyBytes: replyLen(proto.StatBytes), next: func(c *client) bool {
			i := c.made*watchingConnections + c.index
			if i >= size {
				return false
			}
			c.made++
			r := proto.PathWatchRequest{Path: manyPath(i / watchingConnections), Watch: true}
			start := c.begin(proto.OpExists)
			c.out = r.Append(c.out)
			endFrame(c.out, start)
			return true
		}}
		l.play(w.until(ctx), 0, nil)
		progress("growth: %s %s: %s: set in %s", g.piece.name, thousands(float64(size)), t.name, time.Since(begun))
		growWatched(ctx, g, t, size, before, func() error {
			c := l.clients[gone]
			gone++
			return c.close()
		})
	})
}

func growWatchers(ctx context.Context, g *growth, k kind, size int) {
	const going = 2 // number of watchers that leave in growWatched
	if size < going {
		must.Failf("%d connections: want at least %d", size, going)
	}
	g.serve(ctx, k, server.Options{}, func(p *server.Process) {
		t := targetOf(p)
		fillOne(p.Addr(), quietPath, "/watched")
		idle := openIdle(ctx, p.Addr(), size, idleOpeners)
		defer must.Finally(func() error { return closeIdle(idle) })
		before := memoryOf(p.Pid())
		for _, c := range idle {
			must.Do(ctx.Err())
			must.Do(c.call(proto.OpExists, (&proto.PathWatchRequest{Path: "/watched", Watch: true}).Append, replyLen(proto.StatBytes)))
		}
		growWatched(ctx, g, t, size, before, func() error {
			c := idle[0]
			idle = idle[1:]
			return c.close()
		})
	})
}

func setQuiet() *workload {
	r := proto.SetDataRequest{Path: quietPath, Data: payload, Version: -1}
	return &workload{name: "set", replyBytes: replyLen(proto.StatBytes), next: func(c *client) bool {
		start := c.begin(proto.OpSetData)
		c.out = r.Append(c.out)
		endFrame(c.out, start)
		return true
	}}
}

// growWatched measures a server whose watches are set. before is the server's memory without
// watches; each call of goOne closes the session of another watcher.
func growWatched(ctx context.Context, g *growth, t target, size int, before memory, goOne func() error) {
	after := g.noteMemory(t, size)
	g.noteEach(t, size, "watch", before, after)
	g.warm(ctx, t, setQuiet())
	g.load(ctx, t, size, shape{1, 1}, setQuiet())
	awaitIdle(ctx, t.pids)
	const quietly = 500 * time.Millisecond
	used := func(do func() error) time.Duration {
		before := preciseCPU(t.pids[0])
		must.Do(do())
		pause(ctx, quietly)
		return preciseCPU(t.pids[0]) - before
	}
	rest := used(func() error { return nil })
	one := used(goOne)
	g.note("a session with watches is closed", "ms", "CPU to remove it", t.name, size, (one-rest).Seconds()*1e3)
	longest := setsWhile(ctx, t, goOne)
	g.note("a session with watches is closed", "ms", "longest set meanwhile", t.name, size, longest.Seconds()*1e3)
	progress("growth: %s %s: %s: a session goes with %s of CPU; longest set meanwhile %s", g.piece.name, thousands(float64(size)), t.name, one-rest, longest)
}

// setsWhile returns the longest of sequential sets while do runs.
func setsWhile(ctx context.Context, t target, do func() error) time.Duration {
	const before, in = 100 * time.Millisecond, 600 * time.Millisecond
	var r *result
	must.All(func() { r = runOnce(t, shape{1, 1}, setQuiet().until(ctx), in) }, func() {
		pause(ctx, before)
		must.Do(do())
	})
	return r.latencies.max()
}
