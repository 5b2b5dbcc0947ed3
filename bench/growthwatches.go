//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

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

func growWatches(ctx context.Context, g *growth, k kind, size int) error {
	return g.serve(ctx, k, server.Options{}, func(p *server.Process) error {
		t := targetOf(p)
		if err := fillOne(p.Addr(), quietPath); err != nil {
			return err
		}
		if err := fillMany(ctx, p.Addr(), watchedZnodes, nil); err != nil {
			return err
		}
		l, err := openLoad(t.addrs, watchingConnections, 64)
		if err != nil {
			return err
		}
		gone := 0
		closeRest := func() error {
			l.clients = l.clients[gone:]
			return l.close()
		}
		before, err := memoryOf(p.Pid())
		if err != nil {
			return finally(err, closeRest)
		}
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
		if _, err := l.run(w.until(ctx), 0, nil); err != nil {
			return finally(err, closeRest)
		}
		progress("growth: %s %s: %s: set in %s", g.piece.name, thousands(float64(size)), t.name, time.Since(begun))
		err = growWatched(ctx, g, t, size, before, func() error {
			c := l.clients[gone]
			gone++
			return c.close()
		})
		return finally(err, closeRest)
	})
}

func growWatchers(ctx context.Context, g *growth, k kind, size int) error {
	const going = 2 // number of watchers that leave in growWatched
	if size < going {
		return fmt.Errorf("%d connections: want at least %d", size, going)
	}
	return g.serve(ctx, k, server.Options{}, func(p *server.Process) error {
		t := targetOf(p)
		if err := fillOne(p.Addr(), quietPath, "/watched"); err != nil {
			return err
		}
		idle, err := openIdle(ctx, p.Addr(), size)
		closeAll := func() error { return closeIdle(idle) }
		if err != nil {
			return finally(err, closeAll)
		}
		before, err := memoryOf(p.Pid())
		if err != nil {
			return finally(err, closeAll)
		}
		for _, c := range idle {
			err := errors.Join(ctx.Err(), c.call(proto.OpExists, (&proto.PathWatchRequest{Path: "/watched", Watch: true}).Append, replyLen(proto.StatBytes)))
			if err != nil {
				return finally(err, closeAll)
			}
		}
		err = growWatched(ctx, g, t, size, before, func() error {
			c := idle[0]
			idle = idle[1:]
			return c.close()
		})
		return finally(err, closeAll)
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
func growWatched(ctx context.Context, g *growth, t target, size int, before memory, goOne func() error) error {
	after, err := g.noteMemory(t, size)
	if err != nil {
		return err
	}
	g.noteEach(t, size, "watch", before, after)
	if err := g.warm(ctx, t, setQuiet()); err != nil {
		return err
	}
	if err := g.load(ctx, t, size, shape{1, 1}, setQuiet()); err != nil {
		return err
	}
	if err := awaitIdle(ctx, t.pids); err != nil {
		return err
	}
	const quietly = 500 * time.Millisecond
	used := func(do func() error) (time.Duration, error) {
		before, err := preciseCPU(t.pids[0])
		if err == nil {
			err = do()
		}
		if err != nil {
			return 0, err
		}
		if !sleep(ctx, quietly) {
			return 0, ctx.Err()
		}
		after, err := preciseCPU(t.pids[0])
		return after - before, err
	}
	rest, err := used(func() error { return nil })
	if err != nil {
		return err
	}
	one, err := used(goOne)
	if err != nil {
		return fmt.Errorf("close a session with watches: %w", err)
	}
	g.note("a session with watches is closed", "ms", "CPU to remove it", t.name, size, (one-rest).Seconds()*1e3)
	longest, err := setsWhile(ctx, t, goOne)
	if err != nil {
		return err
	}
	g.note("a session with watches is closed", "ms", "longest set meanwhile", t.name, size, longest.Seconds()*1e3)
	progress("growth: %s %s: %s: a session goes with %s of CPU; longest set meanwhile %s", g.piece.name, thousands(float64(size)), t.name, one-rest, longest)
	return nil
}

// setsWhile returns the longest of sequential sets while do runs.
func setsWhile(ctx context.Context, t target, do func() error) (time.Duration, error) {
	const before, in = 100 * time.Millisecond, 600 * time.Millisecond
	done := make(chan error, 1)
	// Ends by itself; awaited below.
	go func() {
		if !sleep(ctx, before) {
			done <- ctx.Err()
			return
		}
		done <- do()
	}()
	r, err := runOnce(t, shape{1, 1}, setQuiet().until(ctx), in)
	if err := errors.Join(err, <-done); err != nil {
		return 0, err
	}
	return r.latencies.max(), nil
}
