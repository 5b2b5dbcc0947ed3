//go:build linux

package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/gozkd/gozkd/internal/backoff"
	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/test/compat/server"
)

const (
	writersEach = 4                    // clients on each member
	writerPause = 5 * time.Millisecond // between two writes of a client, and between two attempts to connect
	// dialPatience limits an attempt to connect: ZooKeeper may accept a connection before it can
	// serve, and then never answers.
	dialPatience = 500 * time.Millisecond
	// failoverQuiet is how long writes must succeed before the leader is killed and afterwards.
	failoverQuiet = time.Second
	// failoverPatience is how long to wait for a silent ensemble.
	failoverPatience = time.Minute
)

// failoverTick is the tickTime: the default.
const failoverTick = 2000

var failoverRow = fmt.Sprintf("leader killed, tickTime %d", failoverTick)

// outage holds what clients saw of a kill.
type outage struct {
	without time.Duration // longest time in which no client's write succeeded
	all     time.Duration // from the kill until each client of the surviving members had written again
	lost    int           // broken connections to surviving members
}

// benchFailover kills leaders, the ensembles in turn.
func benchFailover(ctx context.Context, s *settings) {
	var list []reading
	s.out.attempt(ctx, failoverRow, "", func() { list = failoverOf(ctx, s) })
	title := fmt.Sprintf("kill -9 of the leader of %d members, %d times, under %d clients of each", nMembers, s.kills, writersEach)
	s.out.report("failover", title, list)
}

func failoverOf(ctx context.Context, s *settings) (list []reading) {
	var ensembles []*server.Ensemble
	config := keys()
	config["tickTime"] = strconv.Itoa(failoverTick)
	for _, k := range s.servers {
		e := must.Get(k.StartEnsemble(ctx, server.EnsembleOptions{Members: nMembers, Keys: config}))
		defer must.Finally(e.Stop)
		ensembles = append(ensembles, e)
		prepareAll(e.Addrs())
	}
	seen, broken := make([][]outage, len(ensembles)), make([]bool, len(ensembles))
	for i := range s.kills {
		for j, e := range ensembles {
			if broken[j] {
				continue
			}
			var o outage
			if err := must.Try(func() { o = failoverOnce(ctx, e) }); err != nil {
				s.out.fail(ctx, failoverRow, e.Name(), fmt.Errorf("kill %d of %d: %w\n%s", i+1, s.kills, err, e.Log()))
				broken[j] = true // the next kill would hit a damaged ensemble
				continue
			}
			progress("failover, %s %d/%d: no write for %s, all wrote after %s, %d connections lost",
				e.Name(), i+1, s.kills, o.without, o.all, o.lost)
			seen[j] = append(seen[j], o)
		}
	}
	for j, e := range ensembles {
		if broken[j] {
			continue
		}
		var without, all []time.Duration
		lost := 0
		for _, o := range seen[j] {
			without, all, lost = append(without, o.without), append(all, o.all), lost+o.lost
		}
		list = append(list, reading{failoverRow, "no write ms", e.Name(), spreadOf(milliseconds(without))},
			reading{failoverRow, "until all wrote ms", e.Name(), spreadOf(milliseconds(all))},
			reading{failoverRow, "clients of the others cut", e.Name(), once(float64(lost))})
	}
	return list
}

func milliseconds(ds []time.Duration) []float64 {
	var ms []float64
	for _, d := range ds {
		ms = append(ms, d.Seconds()*1e3)
	}
	return ms
}

// failoverOnce kills the leader under writes to all members and restores the ensemble.
func failoverOnce(ctx context.Context, e *server.Ensemble) (o outage) {
	ctx, cancel := context.WithTimeout(ctx, failoverPatience)
	defer cancel()
	writing, rest := context.WithCancel(ctx)
	var wg sync.WaitGroup
	// Writers on surviving members finish their write; the sockets of others close with the member.
	defer wg.Wait()
	defer rest()
	l := new(writeLog)
	byMember := map[*server.Member][]*writer{}
	var writers []*writer
	for _, m := range e.Members {
		for range writersEach {
			w := &writer{addr: m.Addr(), index: len(writers), log: l}
			writers, byMember[m] = append(writers, w), append(byMember[m], w)
			wg.Go(func() { w.run(writing) }) // ends with writing; awaited above
		}
	}
	l.awaitWrites(ctx, time.Now(), writers)
	must.Sleep(ctx, failoverQuiet)
	leader := must.Get(e.Leader(ctx))
	var others []*writer
	for _, m := range e.Members {
		if m != leader {
			others = append(others, byMember[m]...)
		}
	}
	killed := l.reset(others)
	must.Do(leader.Kill())
	must.Doing(fmt.Sprintf("after the kill of member %d", leader.ID), func() { l.awaitWrites(ctx, killed, others) })
	o.all = time.Since(killed)
	must.Sleep(ctx, failoverQuiet) // further outages in this time count
	o.without, o.lost = l.outage(others)
	leader.Start()
	back := time.Now()
	e.AwaitServing(ctx)
	l.awaitWrites(ctx, back, writers)
	return o
}

// writer is a client that writes repeatedly and reconnects when its connection breaks.
type writer struct {
	addr  string
	index int
	log   *writeLog

	sent time.Time // of the newest successful write; guarded by log.mu
	lost int       // connections since reset; guarded by log.mu
}

// run returns when ctx ends.
func (w *writer) run(ctx context.Context) {
	for ctx.Err() == nil {
		if c, err := dialImpatient(w.addr, w.index, 1, dialPatience); err == nil {
			w.writeTo(ctx, c)
		}
		backoff.Sleep(ctx, writerPause)
	}
}

// writeTo writes until ctx ends or the connection breaks.
func (w *writer) writeTo(ctx context.Context, c *client) {
	// No error ends the measurement: the time without writes is the figure.
	defer func() { _ = c.close() }()
	if err := setPatience(c.fd, ioTimeout); err != nil {
		return
	}
	for ctx.Err() == nil {
		sent := time.Now()
		if err := c.call(proto.OpSetData, setRequest(c).Append, replyLen(proto.StatBytes)); err != nil {
			w.log.noteLost(w)
			return
		}
		w.log.noteWrite(w, sent)
		backoff.Sleep(ctx, writerPause)
	}
}

// writeLog records the successful writes of all writers. Safe for concurrent use.
type writeLog struct {
	mu      sync.Mutex
	last    time.Time     // time of the last success
	longest time.Duration // longest gap between successes since reset
}

func (l *writeLog) noteWrite(w *writer, sent time.Time) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.last.IsZero() {
		l.longest = max(l.longest, now.Sub(l.last))
	}
	l.last, w.sent = now, sent
}

func (l *writeLog) noteLost(w *writer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.lost++
}

// reset forgets outages and the lost connections of ws, and returns the time.
func (l *writeLog) reset(ws []*writer) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.longest = 0
	for _, w := range ws {
		w.lost = 0
	}
	return time.Now()
}

// outage returns the longest gap between writes since reset, and how many connections of ws broke.
func (l *writeLog) outage(ws []*writer) (longest time.Duration, lost int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range ws {
		lost += w.lost
	}
	return l.longest, lost
}

// awaitWrites waits until each of ws has succeeded with a write sent after since.
func (l *writeLog) awaitWrites(ctx context.Context, since time.Time, ws []*writer) {
	const interval = time.Millisecond
	for {
		l.mu.Lock()
		waiting := 0
		for _, w := range ws {
			if !w.sent.After(since) {
				waiting++
			}
		}
		l.mu.Unlock()
		if waiting == 0 {
			return
		}
		if !backoff.Sleep(ctx, interval) {
			must.Failf("%d of %d clients do not write: %w", waiting, len(ws), ctx.Err())
		}
	}
}
