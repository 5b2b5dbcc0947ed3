//go:build linux

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// Each server gets its watchers in watchBlocks blocks, in turn: the watchers of two servers at once
// would need more descriptors than many machines allow. In each block watches are set and fired
// watchRounds times; the first watchSkipped rounds do not count.
const watchBlocks, watchRounds, watchSkipped = 3, 10, 3

// fanOut describes the watchers: each of the connections has a data watch on each of the znodes.
type fanOut struct{ watchers, znodes int }

func (f fanOut) String() string {
	return fmt.Sprintf("%s watchers of %s", thousands(float64(f.watchers)), thousands(float64(f.znodes)))
}

// fanOuts are a znode with many watchers, many znodes with a single watcher, and many of both. The
// last takes minutes, and is only measured if -rows names it.
var fanOuts = []fanOut{{1_000, 1}, {10_000, 1}, {1, 10_000}, {10_000, 100}}

const watchedParent = rootPath + "/watched"

func watchedPath(i int) string { return fmt.Sprintf("%s/n%05d", watchedParent, i) }

// many reports whether setting and firing all watches takes long.
func (f fanOut) many() bool { return f.watchers*f.znodes > 100_000 }

// fired holds all rounds of a fan-out on a server, from the first set to the last event.
type fired struct {
	took, cpu []float64 // per round: microseconds per event
	memory    []float64 // per block: resident bytes per watch
}

// benchWatches measures how long changes take to reach all watchers, and the server's CPU time.
func benchWatches(ctx context.Context, s *settings) {
	var list []reading
	for _, f := range fanOuts {
		if !strings.HasPrefix(f.String(), s.rows) || s.rows == "" && f.many() {
			continue
		}
		f := f.fitting()
		s.out.attempt(ctx, f.String(), "", func() { list = append(list, compareFanOut(ctx, s, f)...) })
	}
	s.out.report("watches", fmt.Sprintf("Watches: from the first set to the last event, each of %d times; µs per event",
		watchBlocks*(watchRounds-watchSkipped)), list)
}

func compareFanOut(ctx context.Context, s *settings, f fanOut) (list []reading) {
	s.withTargets(ctx, 1, func(targets []target) {
		for _, t := range targets {
			prepareAll(t.addrs)
			createAll(t.addrs[0], 1, nil, func(int) string { return watchedParent })
			createAll(t.addrs[0], f.znodes, payload, watchedPath)
		}
		seen := make([]fired, len(targets))
		blocks := watchBlocks
		if f.many() {
			blocks = 1
		}
		for block := range blocks {
			for i, t := range targets {
				warm := s.warm
				if block > 0 {
					warm = 0
				}
				must.Doing(t.name, func() { fireBlock(ctx, t, f, warm, &seen[i]) })
			}
		}
		for i, t := range targets {
			took, cpu, memory := spreadOf(seen[i].took), spreadOf(seen[i].cpu), spreadOf(seen[i].memory)
			progress("watches: %v, %s: %.2f µs per event, %.2f of CPU; %.0f bytes per watch", f, t.name, took.Median, cpu.Median, memory.Median)
			list = append(list, reading{f.String(), "µs per event", t.name, took}, reading{f.String(), "CPU µs per event", t.name, cpu},
				reading{f.String(), "resident bytes per watch", t.name, memory})
		}
	})
	return list
}

// fireBlock opens the connections and measures some rounds, after others for at least warm.
func fireBlock(ctx context.Context, t target, f fanOut, warm time.Duration, seen *fired) {
	l := openLoad(t.addrs, f.watchers+1, setsInFlight)
	for _, c := range l.clients {
		c.in = make([]byte, 1<<10) // the buffer grows if needed
	}
	start, n := time.Now(), float64(f.watchers*f.znodes)
	l.whileOpen(func() {
		for round := 0; round < watchRounds; {
			before := memoryOf(t.pids[0]).rss
			l.watchAll(f)
			if round == 0 {
				seen.memory = append(seen.memory, float64(memoryOf(t.pids[0]).rss-before)/n)
			}
			took, cpu := fireOnce(t.pids[0], l, f)
			must.Do(ctx.Err())
			if time.Since(start) < warm {
				continue
			}
			if round >= watchSkipped {
				seen.took = append(seen.took, float64(took.Nanoseconds())/1e3/n)
				seen.cpu = append(seen.cpu, float64(cpu.Nanoseconds())/1e3/n)
			}
			round++
		}
	})
}

// fitting returns f with as many watchers as this process may have files, also in the row's name.
func (f fanOut) fitting() fanOut {
	const others = 500
	var limit unix.Rlimit
	must.Do(unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	f.watchers = min(f.watchers, int(min(limit.Cur, 1<<30))-others)
	return f
}

// setsInFlight bounds the changes of a round in flight.
const setsInFlight = 64

// watchAll sets all watches. The last connection of the load sets none.
func (l *load) watchAll(f fanOut) {
	for i := range f.watchers {
		for z := range f.znodes {
			l.clients[i].request(proto.OpGetData, (&proto.PathWatchRequest{Path: watchedPath(z), Watch: true}).Append)
		}
		l.send(nothing, i, 0, 0)
	}
	l.await(nothing, f.watchers*f.znodes, func(c *client, b []byte) { must.Do(c.answer(b, 0)) })
}

// fireOnce changes each znode once on the last connection, and waits for all events and replies.
// Input is read in order of arrival: if the generator waited for the reply before it read events,
// its work would follow the server's, and the time would be the sum of both.
func fireOnce(pid int, l *load, f fanOut) (took, cpu time.Duration) {
	n, writer, z := f.watchers*f.znodes, l.clients[f.watchers], 0
	sets := &workload{name: "set", next: func(c *client) bool {
		if c != writer || z == f.znodes {
			return false
		}
		c.request(proto.OpSetData, (&proto.SetDataRequest{Path: watchedPath(z), Data: payload, Version: -1}).Append)
		z++
		return true
	}}
	before := preciseCPU(pid)
	start := time.Now()
	l.send(sets, f.watchers, setsInFlight, 0)
	l.await(sets, n+f.znodes, func(c *client, b []byte) {
		if c == writer {
			must.Do(c.answer(b, 0))
			return
		}
		var h proto.ReplyHeader
		d := jute.NewDecoder(b)
		if h.Decode(&d); d.Err() != nil || h.Xid != proto.XidEvent {
			must.Failf("no event but %+v", h)
		}
	})
	took = time.Since(start)
	return took, preciseCPU(pid) - before
}

// nothing is a workload without requests. Requests that are in the output already are sent.
var nothing = &workload{next: func(*client) bool { return false }}

// await takes n frames from any connections, and sends as many requests of w on a connection as it
// received frames there.
func (l *load) await(w *workload, n int, take func(c *client, b []byte)) {
	events := make([]unix.EpollEvent, 512)
	for n > 0 {
		ready := l.wait(events)
		if len(ready) == 0 {
			must.Failf("nothing came within %s, %d are due", ioTimeout, n)
		}
		for _, e := range ready {
			i := int(e.Fd)
			c := l.clients[i]
			must.Get(c.fill())
			taken := 0
			for b := c.frame(); b != nil; b = c.frame() {
				take(c, b)
				taken++
			}
			n -= taken
			l.send(w, i, taken, 0)
		}
	}
}
