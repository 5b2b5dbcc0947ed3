//go:build linux

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/server"
)

// shape is the number of connections and of requests in flight on each.
type shape struct{ connections, window int }

func (s shape) String() string { return fmt.Sprintf("%dx%d", s.connections, s.window) }

func parseShapes(list string) ([]shape, error) {
	var shapes []shape
	for _, word := range strings.Split(list, ",") {
		var s shape
		if n, err := fmt.Sscanf(word, "%dx%d", &s.connections, &s.window); n != 2 || err != nil || s.String() != word ||
			s.connections < 1 || s.connections > maxLoad || s.window < 1 || s.window > 1000 {
			return nil, fmt.Errorf("shape %q: want connections, x, requests in flight, as 16x16; at most %dx1000", word, maxLoad)
		}
		shapes = append(shapes, s)
	}
	return shapes, nil
}

// chosen returns the rows whose name begins with prefix.
func chosen(rows []*workload, prefix string) []*workload {
	rows = slices.DeleteFunc(slices.Clone(rows), func(w *workload) bool { return !strings.HasPrefix(w.name, prefix) })
	if len(rows) == 0 {
		must.Failf("no row begins with %q", prefix)
	}
	return rows
}

// measured holds all rounds of a row and shape on a server.
type measured struct {
	rates, cpu   []float64 // by round: operations per second; microseconds of the server's CPU per operation
	latencies    histogram
	ops          int64
	elapsed, own time.Duration
	disk         diskUse
}

func (m *measured) add(r *result) {
	m.rates = append(m.rates, r.opsPerSecond())
	m.cpu = append(m.cpu, r.cpuPerOp())
	m.latencies.add(&r.latencies)
	m.ops += r.ops
	m.elapsed += r.elapsed
	m.own += r.ownCPU
	m.disk.bytes += r.disk.bytes
	m.disk.syncs += r.disk.syncs
}

// benchThroughput keeps all servers running and gives each the same load in turn.
func benchThroughput(ctx context.Context, s *settings) { benchThroughputOf(ctx, s, []string{s.rows}) }

// benchThroughputOf is benchThroughput for the rows that begin with these prefixes.
func benchThroughputOf(ctx context.Context, s *settings, prefixes []string) {
	name := "throughput"
	var rows []*workload
	for _, prefix := range prefixes {
		rows = append(rows, chosen(workloads(), prefix)...)
	}
	if s.tlsKeys != nil {
		name += "-tls" // the figures are no successors of those without
	}
	s.withTargets(ctx, 1, func(targets []target) {
		for _, t := range targets {
			prepareAll(t.addrs)
		}
		s.out.comparisons(name, compareRows(ctx, s, rows, targets, s.warm))
	})
}

// compareRows gives each target the same load in turn. Each row begins with unmeasured load on each
// target, for the time warm. A failed row has no servers in its comparison.
func compareRows(ctx context.Context, s *settings, rows []*workload, targets []target, warm time.Duration) []comparison {
	var all []comparison
	for _, w := range rows {
		if warm > 0 {
			for _, t := range targets {
				s.out.attempt(ctx, w.name+", before the rounds", t.name, func() { runOnce(t, shape{16, 16}, w, warm) })
			}
		}
		for _, sh := range s.shapes {
			c := comparison{Row: w.name, Shape: sh.String()}
			s.out.attempt(ctx, c.key(), "", func() {
				c.Servers = inRounds(ctx, s, c.key(), targets, func(t target) *result { return runOnce(t, sh, w, s.seconds) })
			})
			all = append(all, c)
		}
	}
	return all
}

// inRounds measures each target in turn, in rounds.
func inRounds(ctx context.Context, s *settings, what string, targets []target, measure func(t target) *result) (all []figures) {
	seen := make([]measured, len(targets))
	for range s.rounds {
		for i, t := range targets {
			r := measure(t)
			seen[i].add(r)
			progress("%-31s %-16s %9.0f ops/s %8.2f µs of CPU per op", what, t.name, r.opsPerSecond(), r.cpuPerOp())
			must.Do(ctx.Err())
		}
	}
	for i, t := range targets {
		all = append(all, seen[i].figures(t.name, memoryOf(t.pids...)))
	}
	return all
}

// runOnce opens new connections for a load, and removes the znodes that the load created.
func runOnce(t target, sh shape, w *workload, d time.Duration) (r *result) {
	must.Doing(strings.TrimSpace(t.name+" "+w.name), func() {
		l := openLoad(t.addrs, sh.connections, sh.window)
		l.whileOpen(func() {
			if r = l.play(w, d, t.pids); d > 0 && r.ops == 0 {
				must.Failf("nothing was answered within %s", d)
			}
			if w.undo != nil {
				l.play(w.undo, 0, nil)
			}
		})
		if w.after != nil {
			w.after(t.addrs)
		}
	})
	return r
}

// nMembers is the size of ensembles, unless -members says otherwise.
const nMembers = 3

// ensembleRows names the rows in which ensembles are compared.
var ensembleRows = []string{"get 100 B", "set 100 B", "create 100 B", "multi of 10 sets", "sync", "mixed: 90% get, 10% set"}

// benchEnsemble gives an ensemble of each kind the same load in turn, spread over all members.
func benchEnsemble(ctx context.Context, s *settings) {
	var rows []*workload
	for _, name := range ensembleRows {
		rows = append(rows, workloadNamed(name))
	}
	rows = chosen(rows, s.rows)
	s.withTargets(ctx, s.members, func(targets []target) {
		for _, t := range targets {
			prepareAll(t.addrs)
		}
		s.out.printf("\nEnsembles of %d, the connections spread over all members, the first on a follower; CPU time and memory are of all members together.\n", s.members)
		s.out.comparisons("ensemble", compareRows(ctx, s, rows, targets, s.warm))
	})
}

// followersFirst returns the members' client addresses, the leader's last.
func followersFirst(ctx context.Context, e *server.Ensemble) []string {
	var addrs []string
	for _, m := range must.Get(e.LeaderFirst(ctx)) {
		addrs = append(addrs, m.Addr())
	}
	return append(addrs[1:], addrs[0])
}
