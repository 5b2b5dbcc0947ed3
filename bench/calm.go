//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gozkd/gozkd/internal/backoff"
	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/test/compat/server"
)

const (
	calmConnections = 16
	calmWarm        = 3 * time.Second // of unmeasured paced writes at the beginning
	// neverCheckpoint is a snapCount that no measurement reaches.
	neverCheckpoint = 100_000_000
)

// The situations that benchCalm measures.
const (
	alone          = "alone"
	checkpointing  = "checkpoints"
	aloneThree     = "three members, alone"
	catchingUp     = "a member catches up"
	aloneSessions  = "idle sessions, alone"
	reconnecting   = "all sessions reconnect"
	calmRowPattern = "paced writes: %s"
)

// moment holds the latencies of paced writes on a server in a situation.
type moment struct {
	what, than string // than: the situation to compare with; empty: no comparison
	server     string
	seen       *pacedSeen
	took       []float64 // ms: how long the disturbance took, each time; empty: as long as the measurement
	note       string    // the disturbance in figures
}

// benchCalm sends writes at a steady rate, well below what the servers can do, and reports the slow
// writes: undisturbed, while checkpoints are written, while a member catches up, and while all
// sessions reconnect at once.
func benchCalm(ctx context.Context, s *settings) {
	var all []moment
	chosen := 0
	for _, part := range []struct {
		what string
		of   func(context.Context, *settings, kind) []moment
	}{{checkpointing, calmCheckpoints}, {catchingUp, calmCatchUp}, {reconnecting, calmReconnects}} {
		if !strings.HasPrefix(part.what, s.rows) {
			continue
		}
		chosen++
		for _, k := range s.servers {
			var ms []moment
			s.out.attempt(ctx, fmt.Sprintf(calmRowPattern, part.what), k.Name, func() { ms = part.of(ctx, s, k) })
			for _, m := range ms {
				progress("calm: %-16s %-24s p50 %s p99 %s p99.9 %s max %s µs, sent late p99.9 %s; %s", m.server, m.what, micros(m.seen.latencies.quantile(0.5)),
					micros(m.seen.latencies.quantile(0.99)), micros(m.seen.latencies.quantile(0.999)), micros(m.seen.latencies.max()), micros(m.seen.late.quantile(0.999)), m.note)
			}
			all = append(all, ms...)
		}
	}
	if chosen == 0 {
		must.Failf("nothing that goes on begins with %q: there are %s, %s, %s", s.rows, checkpointing, catchingUp, reconnecting)
	}
	s.out.report("calm", fmt.Sprintf("%d paced writes of %d bytes per second, while something goes on: latency from when each was due, and how many times that without",
		s.rate, dataBytes), calmReadings(all))
	for _, m := range all {
		if m.note != "" {
			s.out.printf("\n* %s, %s: %s", m.server, m.what, m.note)
		}
	}
	s.out.printf("\n")
}

// calmQuantiles are the quantiles reported for each situation.
var calmQuantiles = []struct {
	name string
	q    float64
}{{"p50", 0.5}, {"p99", 0.99}, {"p99.9", 0.999}, {"max", 1}}

// before returns the situation that m is compared with, or nil.
func (m *moment) before(all []moment) *moment {
	for i := range all {
		if m.than != "" && all[i].what == m.than && all[i].server == m.server {
			return &all[i]
		}
	}
	return nil
}

func calmReadings(all []moment) (list []reading) {
	for i := range all {
		m := &all[i]
		row := fmt.Sprintf(calmRowPattern, m.what)
		for _, q := range calmQuantiles {
			v, than := m.seen.latencies.quantile(q.q), m.before(all)
			list = append(list, reading{row, q.name + " µs", m.server, once(float64(v) / 1e3)})
			if than != nil {
				list = append(list, reading{row, q.name + " ratio", m.server, once(float64(v) / float64(than.seen.latencies.quantile(q.q)))})
			}
		}
		list = append(list, reading{row, "sent late, p99.9 µs", m.server, once(float64(m.seen.late.quantile(0.999)) / 1e3)})
		if m.took != nil {
			list = append(list, reading{row, "took ms", m.server, spreadOf(m.took)})
		}
	}
	return list
}

// leastPaced is the minimum time for which writes are counted, also when the disturbance is
// shorter.
const leastPaced = 2 * time.Second

// while adds what pacedFor measures while f runs, and returns how many milliseconds f took.
func (s *pacedSeen) while(ctx context.Context, addrs []string, rate int, w *workload, f func(ctx context.Context)) (ms float64) {
	seen := pacedFor(ctx, addrs, rate, w, func(ctx context.Context) {
		start := time.Now()
		f(ctx)
		took := time.Since(start)
		ms = took.Seconds() * 1e3
		must.Sleep(ctx, leastPaced-took)
	})
	s.add(seen)
	return ms
}

// pacedFor sends paced writes to the addresses while f runs, and uncounted writes before.
func pacedFor(ctx context.Context, addrs []string, rate int, w *workload, f func(ctx context.Context)) *pacedSeen {
	l := openLoad(addrs, calmConnections, 1)
	defer must.Finally(l.close)
	warm := make(chan struct{})
	time.AfterFunc(calmWarm, func() { close(warm) })
	l.paced(ctx, w, rate, warm)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // a failed load ends f
	stop, failed := make(chan struct{}), make(chan error, 1)
	// Ends with f; its error is awaited below.
	go func() {
		failed <- must.Try(func() { f(ctx) })
		close(stop)
	}()
	var h *pacedSeen
	err := must.Try(func() { h = l.paced(ctx, w, rate, stop) })
	cancel()
	must.Do(errors.Join(<-failed, err))
	return h
}

// sleepFor returns a function that does nothing for d: the undisturbed case.
func sleepFor(d time.Duration) func(ctx context.Context) {
	return func(ctx context.Context) { must.Sleep(ctx, d) }
}

// calmCheckpoints compares writes to random znodes without a checkpoint and with checkpoints in
// turn: the server starts on the same data with a snapCount that is never reached, and with a
// snapCount that two seconds of writes reach.
func calmCheckpoints(ctx context.Context, s *settings, k kind) (ms []moment) {
	dir := must.Get(os.MkdirTemp("", "gozkd-bench-data-"))
	defer must.Finally(func() error { return os.RemoveAll(dir) })
	filled(ctx, k, dir, s.znodes)
	for _, part := range []struct {
		what, than string
		snapCount  int
	}{{alone, "", neverCheckpoint}, {checkpointing, alone, max(2*s.rate, 2)}} {
		opts := server.Options{Keys: keys(), DataDir: dir}
		opts.Keys["4lw.commands.whitelist"] = "srvr,mntr"
		opts.Keys["snapCount"] = strconv.Itoa(part.snapCount)
		m := moment{what: part.what, than: part.than}
		var use diskUse
		var done written // checkpoints, while writes were measured
		k.with(ctx, opts, func(p *server.Process) {
			m.server = p.Name()
			m.seen = pacedFor(ctx, []string{p.Addr()}, s.rate, setMany(s.znodes), func(ctx context.Context) {
				before, disk := checkpoints(ctx, p.Addr()), diskUseBelow(dir)
				must.Sleep(ctx, s.calm)
				after := checkpoints(ctx, p.Addr())
				done, use = written{after.n - before.n, after.ms - before.ms}, diskUseBelow(dir).since(disk)
			})
		})
		if part.than != "" && done.n == 0 {
			must.Failf("no checkpoint was written within %s", s.calm)
		}
		m.note = fmt.Sprintf("%s znodes, snapCount %s: %.0f checkpoints of %.0f ms and %s MB written in %s", thousands(float64(s.znodes)),
			thousands(float64(part.snapCount)), done.n, done.ms/max(done.n, 1), number(float64(use.bytes)/1e6), s.calm)
		ms = append(ms, m)
	}
	return ms
}

// written holds the number of checkpoints a server has written, and their total duration.
type written struct{ n, ms float64 }

// checkpoints asks the server with mntr, where both servers call them snapshots.
func checkpoints(ctx context.Context, addr string) (w written) {
	values := must.Get(server.Monitored(ctx, addr))
	w.n = must.Get(strconv.ParseFloat(values["zk_cnt_snapshottime"], 64))
	w.ms = must.Get(strconv.ParseFloat(values["zk_sum_snapshottime"], 64))
	return w
}

// filled leaves a data directory with n znodes at the paths of manyPath.
func filled(ctx context.Context, k kind, dir string, n int) {
	k.with(ctx, server.Options{Keys: keys(), DataDir: dir}, func(p *server.Process) { fillMany(ctx, p.Addr(), n, payload) })
}

// catchUps is how often a member is stopped and catches up.
const catchUps = 3

// calmCatchUp compares writes to two of three members while the third is in sync, and while the
// third fetches more missed writes than their logs must keep.
func calmCatchUp(ctx context.Context, s *settings, k kind) (ms []moment) {
	e := k.startEnsemble(ctx, server.EnsembleOptions{Members: nMembers, Keys: keys()})
	defer must.Finally(e.Stop)
	addrs := followersFirst(ctx, e)
	lagging := e.Members[slices.Index(e.Addrs(), addrs[0])]
	addrs = addrs[1:] // of the other members
	prepareAll(e.Addrs())
	sets := workloadNamed("set 100 B")
	quiet := pacedFor(ctx, addrs, s.rate, sets, sleepFor(s.calm))
	during := new(pacedSeen)
	var took []float64
	for range catchUps {
		must.Do(lagging.Kill())
		writesWithout(addrs, s.lag)
		ms := during.while(ctx, addrs, s.rate, sets, func(ctx context.Context) {
			must.Do(lagging.Start())
			awaitSynced(ctx, lagging)
		})
		took = append(took, ms)
	}
	between := spreadOf(took)
	return []moment{{what: aloneThree, server: e.Name(), seen: quiet},
		{what: catchingUp, than: aloneThree, server: e.Name(), seen: during, took: took, note: fmt.Sprintf("%d times %s sets without it, then %.0f ms (%.0f to %.0f) until it had them",
			catchUps, thousands(float64(s.lag)), between.Median, between.Min, between.Max)}}
}

// writesWithout pipelines n sets over the members at the addresses.
func writesWithout(addrs []string, n int) {
	runOnce(target{addrs: addrs}, shape{16, 16}, &workload{name: "set", next: func(c *client) bool {
		if n == 0 {
			return false
		}
		n--
		c.request(proto.OpSetData, setRequest(c).Append)
		return true
	}}, 0)
}

// awaitSynced waits until the member serves and has everything that the other members had at the
// time of the call.
func awaitSynced(ctx context.Context, m *server.Member) {
	const interval, patience = 2 * time.Millisecond, 2 * time.Minute
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		// ZooKeeper may accept a connection before it can serve, and then never answers on that
		// connection.
		c, err := dialImpatient(m.Addr(), 0, 1, time.Second)
		if err == nil {
			path := rootPath
			err = c.call(proto.OpSync, (&proto.PathRequest{Path: &path}).Append, 0)
			if err = errors.Join(err, c.close()); err == nil {
				return
			}
		}
		if !backoff.Sleep(ctx, interval) {
			must.Failf("member %d does not catch up: %w\n%s", m.ID, errors.Join(err, ctx.Err()), m.Log())
		}
	}
}

// reconnects is how often all sessions reconnect.
const reconnects = 3

// calmReconnects compares writes while thousands of sessions are idle, and while all of them lose
// their connections and reconnect at once.
func calmReconnects(ctx context.Context, s *settings, k kind) (ms []moment) {
	p := k.start(ctx, server.Options{Keys: keys()})
	defer must.Finally(p.Stop)
	prepare(p.Addr())
	idle := openLoad([]string{p.Addr()}, s.sessions, 1)
	// The sessions are not closed: a server may process an abandoned connection after its
	// successor, and then closes the successor, because the session has moved.
	defer must.Finally(idle.abandon)
	sets := workloadNamed("set 100 B")
	quiet := pacedFor(ctx, []string{p.Addr()}, s.rate, sets, sleepFor(s.calm))
	during := new(pacedSeen)
	var took []float64
	for range reconnects {
		took = append(took, during.while(ctx, []string{p.Addr()}, s.rate, sets, func(ctx context.Context) { idle.reconnect(ctx, p.Addr()) }))
	}
	between := spreadOf(took)
	return []moment{{what: aloneSessions, server: p.Name(), seen: quiet},
		{what: reconnecting, than: aloneSessions, server: p.Name(), seen: during, took: took, note: fmt.Sprintf("%d times %s sessions; %.0f ms (%.0f to %.0f) until all were back",
			reconnects, thousands(float64(s.sessions)), between.Median, between.Min, between.Max)}}
}

// reconnectRetry is how long a client waits for an answer before it makes a new connection: a
// server whose accept queue is full loses some connections.
const reconnectRetry = 2 * time.Second

// reconnect closes all sockets, connects all of them again at once, and returns when each client
// has its session back. Nothing may be in flight.
func (l *load) reconnect(ctx context.Context, addr string) {
	for _, c := range l.clients {
		l.hangUp(c)
	}
	start := time.Now()
	began, back := make([]time.Duration, len(l.clients)), make([]bool, len(l.clients))
	for i := range l.clients {
		l.resume(i, addr)
		began[i] = time.Since(start)
	}
	const interval, patience = 100 * time.Millisecond, time.Minute
	left, swept := len(l.clients), time.Since(start)
	events := make([]unix.EpollEvent, 512)
	for left > 0 {
		n, err := unix.EpollWait(l.epoll, events, int(interval.Milliseconds()))
		if err != nil && !errors.Is(err, unix.EINTR) {
			must.Failf("epoll: %w", err)
		}
		now := time.Since(start)
		must.Do(ctx.Err())
		if now > patience {
			must.Failf("%d of %d sessions are not back after %s", left, len(l.clients), patience)
		}
		for _, e := range events[:max(n, 0)] {
			i := int(e.Fd)
			var b []byte
			if must.Try(func() { b = l.resumed(i, e.Events) }) != nil { // refused or reset: same as no answer
				l.hangUp(l.clients[i])
				continue
			}
			if b != nil {
				must.Do(l.clients[i].takeSession(b))
				back[i] = true
				left--
			}
		}
		if now-swept < interval {
			continue
		}
		swept = now
		for i, c := range l.clients {
			if back[i] || now-began[i] < reconnectRetry {
				continue
			}
			l.hangUp(c)
			l.resume(i, addr)
			began[i] = now
		}
	}
}

// hangUp closes a client's socket, if any, and forgets the requests in flight.
func (l *load) hangUp(c *client) {
	c.out, c.r, c.w = c.out[:0], 0, 0
	if c.fd < 0 {
		return
	}
	fd := c.fd
	c.fd = -1
	must.Do(unix.Close(fd)) // also removes it from the epoll set
}

// resume connects a client that has no socket.
func (l *load) resume(i int, addr string) {
	l.clients[i].fd = must.Get(connect(addr, ioTimeout, unix.SOCK_NONBLOCK))
	l.watch(unix.EPOLL_CTL_ADD, i, unix.EPOLLOUT)
}

// resumed requests the session of a client whose socket is connected, or returns the reply if it
// has arrived.
func (l *load) resumed(i int, events uint32) []byte {
	c := l.clients[i]
	if events&unix.EPOLLOUT != 0 { // connected, or refused: the write shows which
		c.appendConnect()
		must.Do(c.write())
		l.watch(unix.EPOLL_CTL_MOD, i, unix.EPOLLIN)
		return nil
	}
	must.Get(c.fill())
	return c.frame()
}
