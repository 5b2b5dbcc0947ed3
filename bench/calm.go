//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/server"
)

const (
	calmConnections = 16
	calmRate        = 1000            // writes per second
	calmWarm        = 3 * time.Second // of unmeasured paced writes at the beginning
	calmTime        = 15 * time.Second
	// neverCheckpoint is a snapCount that no measurement reaches.
	neverCheckpoint = 100_000_000
)

// The situations that benchCalm measures.
const (
	alone          = "alone"
	checkpointing  = "checkpoints"
	calmRowPattern = "paced writes: %s"
)

// moment holds the latencies of paced writes on a server in a situation.
type moment struct {
	what, server string
	seen         *pacedSeen
	note         string // the disturbance in figures
}

// benchCalm sends writes at a steady rate, well below what the servers can do, and reports the slow
// writes: undisturbed, and while checkpoints are written.
func benchCalm(ctx context.Context, s *settings) {
	var list []reading
	var notes []string
	for _, k := range s.servers {
		s.out.attempt(ctx, fmt.Sprintf(calmRowPattern, checkpointing), k.Name, func() {
			ms := calmCheckpoints(ctx, s, k)
			list = append(list, calmReadings(ms)...)
			for _, m := range ms {
				notes = append(notes, fmt.Sprintf("%s, %s: %s", m.server, m.what, m.note))
			}
		})
	}
	s.out.report("calm", fmt.Sprintf("%d paced writes of %d bytes per second, without and with checkpoints: latency from when each was due, and how many times that without",
		calmRate, dataBytes), list)
	for _, note := range notes {
		s.out.printf("\n* %s", note)
	}
	s.out.printf("\n")
}

// calmQuantiles are the quantiles reported for each situation.
var calmQuantiles = []struct {
	name string
	q    float64
}{{"p50", 0.5}, {"p99", 0.99}, {"p99.9", 0.999}, {"max", 1}}

// calmReadings returns the figures of situations, each also in relation to the first.
func calmReadings(all []moment) (list []reading) {
	for i, m := range all {
		row := fmt.Sprintf(calmRowPattern, m.what)
		for _, q := range calmQuantiles {
			v := float64(m.seen.latencies.quantile(q.q))
			list = append(list, reading{row, q.name + " µs", m.server, once(v / 1e3)})
			if i > 0 {
				list = append(list, reading{row, q.name + " ratio", m.server, once(v / float64(all[0].seen.latencies.quantile(q.q)))})
			}
		}
		list = append(list, reading{row, "sent late, p99.9 µs", m.server, once(float64(m.seen.late.quantile(0.999)) / 1e3)})
	}
	return list
}

// pacedFor sends paced writes to a server while f runs, and uncounted writes before.
func pacedFor(ctx context.Context, addr string, w *workload, f func(ctx context.Context)) *pacedSeen {
	l := openLoad([]string{addr}, calmConnections, 1)
	defer must.Finally(l.close)
	warm := make(chan struct{})
	time.AfterFunc(calmWarm, func() { close(warm) })
	l.paced(ctx, w, calmRate, warm)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // a failed load ends f
	stop, failed := make(chan struct{}), make(chan error, 1)
	// Ends with f; its error is awaited below.
	go func() {
		failed <- must.Try(func() { f(ctx) })
		close(stop)
	}()
	var h *pacedSeen
	err := must.Try(func() { h = l.paced(ctx, w, calmRate, stop) })
	cancel()
	must.Do(errors.Join(<-failed, err))
	return h
}

// calmCheckpoints compares writes to random znodes without a checkpoint and with checkpoints in
// turn: the server starts on the same data with a snapCount that is never reached, and with a
// snapCount that two seconds of writes reach.
func calmCheckpoints(ctx context.Context, s *settings, k server.Kind) (ms []moment) {
	dir := must.Get(os.MkdirTemp("", "gozkd-bench-data-"))
	defer must.Finally(func() error { return os.RemoveAll(dir) })
	with(ctx, k, server.Options{Keys: keys(), DataDir: dir}, func(p *server.Process) { fillMany(ctx, p.Addr(), s.znodes, payload) })
	sets := named(workloadsOver(func(c *client) string { return manyPath(c.next(s.znodes)) }), "set 100 B")
	for _, part := range []struct {
		what      string
		snapCount int
	}{{alone, neverCheckpoint}, {checkpointing, 2 * calmRate}} {
		opts := server.Options{Keys: keys(), DataDir: dir}
		opts.Keys["4lw.commands.whitelist"] = "srvr,mntr"
		opts.Keys["snapCount"] = strconv.Itoa(part.snapCount)
		m := moment{what: part.what}
		var use diskUse
		var done written // checkpoints, while writes were measured
		with(ctx, k, opts, func(p *server.Process) {
			m.server = p.Name()
			m.seen = pacedFor(ctx, p.Addr(), sets, func(ctx context.Context) {
				before, disk := checkpoints(ctx, p.Addr()), diskUseBelow(dir)
				must.Sleep(ctx, calmTime)
				after := checkpoints(ctx, p.Addr())
				done, use = written{after.n - before.n, after.ms - before.ms}, diskUseBelow(dir).since(disk)
			})
		})
		if part.what == checkpointing && done.n == 0 {
			must.Failf("no checkpoint was written within %s", calmTime)
		}
		m.note = fmt.Sprintf("%s znodes, snapCount %s: %.0f checkpoints of %.0f ms and %s MB written in %s", thousands(float64(s.znodes)),
			thousands(float64(part.snapCount)), done.n, done.ms/max(done.n, 1), number(float64(use.bytes)/1e6), calmTime)
		progress("calm: %s, %s: p99.9 %s µs; %s", m.server, m.what, micros(m.seen.latencies.quantile(0.999)), m.note)
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
