//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/test/compat/server"
)

const (
	calmConnections = 16
	calmWarm        = 3 * time.Second // of paced writes before those that count
	calmQuiet       = 2 * time.Second // an idle server has had so long for what a start leaves to do
	// neverCheckpoint is a snapCount that no measurement reaches.
	neverCheckpoint = 100_000_000
)

// The moments of calm.
const (
	alone          = "alone"
	checkpointing  = "checkpoints"
	aloneThree     = "three members, alone"
	catchingUp     = "a member catches up"
	aloneSessions  = "idle sessions, alone"
	reconnecting   = "all sessions reconnect"
	calmRowPattern = "paced writes: %s"
)

// moment is what paced writes saw on one server while something went on.
type moment struct {
	what, than string // than: the moment to compare with; empty: none
	server     string
	seen       *pacedSeen
	took       []float64 // ms: how long what went on took, each time; empty: as long as it was let
	note       string    // what went on, in figures
}

// benchCalm sends writes at a steady rate, well below what the servers can do, and looks at the slow ones: with nothing else going on,
// and while checkpoints are written, a member catches up, and all sessions reconnect at once.
func benchCalm(ctx context.Context, s *settings) error {
	var all []moment
	for _, part := range []func(context.Context, *settings, kind) ([]moment, error){calmCheckpoints, calmCatchUp, calmReconnects} {
		for _, k := range s.servers {
			ms, err := part(ctx, s, k)
			if err != nil {
				return fmt.Errorf("%s: %w", k.name, err)
			}
			for _, m := range ms {
				progress("calm: %-16s %-24s p50 %s p99 %s p99.9 %s max %s µs, sent late p99.9 %s; %s", m.server, m.what, micros(m.seen.latencies.quantile(0.5)),
					micros(m.seen.latencies.quantile(0.99)), micros(m.seen.latencies.quantile(0.999)), micros(m.seen.latencies.max), micros(m.seen.late.quantile(0.999)), m.note)
			}
			all = append(all, ms...)
		}
	}
	s.out.table(fmt.Sprintf("%d paced writes of %d bytes per second, while something goes on: latency in µs from when each was due, and how many times that without",
		s.rate, dataBytes), []string{"while", "server", "p50", "ratio", "p99", "ratio", "p99.9", "ratio", "max", "ratio", "sent late, p99.9", "what went on"}, calmTable(all))
	return s.out.readings("calm", calmReadings(all))
}

// calmQuantiles are what is said of each moment.
var calmQuantiles = []struct {
	name string
	q    float64
}{{"p50", 0.5}, {"p99", 0.99}, {"p99.9", 0.999}, {"max", 1}}

// before returns what m is compared with, or nil.
func (m *moment) before(all []moment) *moment {
	for i := range all {
		if m.than != "" && all[i].what == m.than && all[i].server == m.server {
			return &all[i]
		}
	}
	return nil
}

func calmTable(all []moment) (table [][]string) {
	for i := range all {
		m := &all[i]
		row := []string{m.what, m.server}
		for _, q := range calmQuantiles {
			v, than := m.seen.latencies.quantile(q.q), m.before(all)
			row = append(row, micros(v))
			if than == nil {
				row = append(row, "")
			} else {
				row = append(row, fmt.Sprintf("%.2f", float64(v)/float64(than.seen.latencies.quantile(q.q))))
			}
		}
		table = append(table, append(row, micros(m.seen.late.quantile(0.999)), m.note))
	}
	return table
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
		if m.took != nil {
			list = append(list, reading{row, "took ms", m.server, spreadOf(m.took)})
		}
	}
	return list
}

// pacedFor sends paced writes to the addresses while f runs, and a while before it that does not count.
func pacedFor(ctx context.Context, addrs []string, rate int, w *workload, f func(ctx context.Context) error) (_ *pacedSeen, err error) {
	l, err := openLoad(addrs, calmConnections, 1)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	warm := make(chan struct{})
	time.AfterFunc(calmWarm, func() { close(warm) })
	if _, err := l.paced(ctx, w, rate, warm); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // a load that fails ends f
	stop, failed := make(chan struct{}), make(chan error, 1)
	// Ends with f, whose error is awaited below.
	go func() {
		failed <- f(ctx)
		close(stop)
	}()
	h, err := l.paced(ctx, w, rate, stop)
	cancel()
	return h, errors.Join(<-failed, err)
}

// sleepFor is what nothing else goes on in.
func sleepFor(d time.Duration) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		if !sleep(ctx, d) {
			return ctx.Err()
		}
		return nil
	}
}

// calmCheckpoints compares writes to random ones of many znodes without any checkpoint and with one after the other: the server is
// started on the same data with a snapCount that is never reached, and with one of two seconds of writes.
func calmCheckpoints(ctx context.Context, s *settings, k kind) (ms []moment, err error) {
	dir, err := os.MkdirTemp("", "gozkd-bench-data-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := filled(ctx, k, dir, s.znodes); err != nil {
		return nil, err
	}
	sets := &workload{name: "set", replyBytes: replyLen(proto.StatBytes), next: func(c *client) bool {
		c.request(proto.OpSetData, (&proto.SetDataRequest{Path: loadedPath(c.next(s.znodes)), Data: payload, Version: -1}).Append)
		return true
	}}
	for _, part := range []struct {
		what, than string
		snapCount  int
	}{{alone, "", neverCheckpoint}, {checkpointing, alone, max(2*s.rate, 2)}} {
		opts := server.Options{Keys: keys(), DataDir: dir}
		opts.Keys["snapCount"] = strconv.Itoa(part.snapCount)
		p, err := k.start(ctx, opts)
		if err != nil {
			return nil, err
		}
		m := moment{what: part.what, than: part.than, server: p.Name()}
		var use diskUse
		m.seen, err = pacedFor(ctx, []string{p.Addr()}, s.rate, sets, func(ctx context.Context) error {
			before, err := diskUseBelow(dir)
			if err == nil {
				err = sleepFor(s.calm)(ctx)
			}
			after, afterErr := diskUseBelow(dir)
			use = after.since(before)
			return errors.Join(err, afterErr)
		})
		if err := errors.Join(err, p.Stop()); err != nil {
			return nil, err
		}
		m.note = fmt.Sprintf("%s znodes, snapCount %s, %s MB written to disk in %s", thousands(float64(s.znodes)), thousands(float64(part.snapCount)),
			number(float64(use.bytes)/1e6), s.calm)
		ms = append(ms, m)
	}
	return ms, nil
}

// filled leaves a data directory with n znodes of loadedPath.
func filled(ctx context.Context, k kind, dir string, n int) error {
	p, err := k.start(ctx, server.Options{Keys: keys(), DataDir: dir})
	if err != nil {
		return err
	}
	return errors.Join(fillLoaded(p.Addr(), n), p.Stop())
}

// loadedPath is the path of one of many znodes, a thousand below each parent.
func loadedPath(i int) string { return fmt.Sprintf("/p%04d/n%07d", i/perParent, i) }

// fillLoaded creates the first n znodes of loadedPath, over pipelining connections.
func fillLoaded(addr string, n int) error {
	parents := (n + perParent - 1) / perParent
	if err := createAll(addr, 1, parents, nil, func(i int) string { return fmt.Sprintf("/p%04d", i) }); err != nil {
		return err
	}
	return createAll(addr, 16, n, payload, loadedPath)
}
