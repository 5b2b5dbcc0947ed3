//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

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

// chosen returns the workloads whose name begins with prefix.
func chosen(prefix string) ([]*workload, error) {
	var list []*workload
	for _, w := range workloads() {
		if strings.HasPrefix(w.name, prefix) {
			list = append(list, w)
		}
	}
	if list == nil {
		return nil, fmt.Errorf("no row begins with %q", prefix)
	}
	return list, nil
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
func benchThroughput(ctx context.Context, s *settings) (err error) {
	rows, err := chosen(s.rows)
	if err != nil {
		return err
	}
	var processes []*server.Process
	defer func() {
		for _, p := range processes {
			err = errors.Join(err, p.Stop())
		}
	}()
	var targets []target
	for _, k := range s.servers {
		p, err := k.start(ctx, server.Options{Keys: keys()})
		if err != nil {
			return err
		}
		processes = append(processes, p)
		targets = append(targets, target{name: p.Name(), addrs: []string{p.Addr()}, pids: []int{p.Pid()}})
		if err := prepare(p.Addr()); err != nil {
			return err
		}
	}
	return compareThroughput(ctx, s, "throughput", rows, targets)
}

// compareThroughput gives each target the same load in turn and outputs the figures as name.
func compareThroughput(ctx context.Context, s *settings, name string, rows []*workload, targets []target) error {
	all, err := compareRows(ctx, s, rows, targets, s.warm)
	if err != nil {
		return err
	}
	return s.out.comparisons(name, fmt.Sprintf("median of %d rounds of %s", s.rounds, s.seconds), all)
}

// compareRows gives each target the same load in turn. Each row begins with unmeasured load on each
// target, for the time warm. A failed row has no servers in its comparison.
func compareRows(ctx context.Context, s *settings, rows []*workload, targets []target, warm time.Duration) ([]comparison, error) {
	var all []comparison
	for _, w := range rows {
		if warm > 0 {
			for _, t := range targets {
				if _, err := runOnce(t, shape{16, 16}, w, warm); err != nil {
					if err := s.out.fail(ctx, w.name+", before the rounds", t.name, err); err != nil {
						return nil, err
					}
				}
			}
		}
		for _, sh := range s.shapes {
			c, err := compareRow(ctx, s, w, sh, targets)
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				if err := s.out.fail(ctx, c.key(), "", err); err != nil {
					return nil, err
				}
				c.Servers = nil
			}
			all = append(all, c)
		}
	}
	return all, nil
}

// compareRow runs a row at a shape on each target, in rounds.
func compareRow(ctx context.Context, s *settings, w *workload, sh shape, targets []target) (comparison, error) {
	c := comparison{Row: w.name, Shape: sh.String()}
	seen := make([]measured, len(targets))
	for range s.rounds {
		for i, t := range targets {
			r, err := runOnce(t, sh, w, s.seconds)
			if err != nil {
				return c, fmt.Errorf("%s: %w", t.name, err)
			}
			seen[i].add(r)
			progress("%-24s %-6s %-16s %9.0f ops/s %8.2f µs of CPU per op", w.name, sh, t.name, r.opsPerSecond(), r.cpuPerOp())
			if ctx.Err() != nil {
				return c, ctx.Err()
			}
		}
	}
	for i, t := range targets {
		m, err := memoryOfAll(t.pids)
		if err != nil {
			return c, err
		}
		c.Servers = append(c.Servers, seen[i].figures(t.name, m))
	}
	return c, nil
}

// runOnce opens new connections for a load, and removes the znodes that the load created.
func runOnce(t target, sh shape, w *workload, d time.Duration) (*result, error) {
	l, err := openLoad(t.addrs, sh.connections, sh.window)
	if err != nil {
		return nil, err
	}
	r, err := l.run(w, d, t.pids)
	if err == nil && d > 0 && r.ops == 0 {
		err = fmt.Errorf("nothing was answered within %s", d)
	}
	if err == nil && w.undo != nil {
		_, err = l.run(w.undo, 0, nil)
	}
	if err == nil {
		err = l.close()
	} else {
		err = errors.Join(err, l.abandon())
	}
	if err == nil && w.after != nil {
		err = w.after(t.addrs)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", w.name, err)
	}
	return r, nil
}

// benchLoad runs the chosen rows and shapes once each on a running server.
func benchLoad(s *settings) error {
	rows, err := chosen(s.rows)
	if err != nil {
		return err
	}
	t := target{addrs: strings.Split(s.addr, ",")}
	if err := prepareOnce(t.addrs); err != nil {
		return err
	}
	if s.pid != 0 {
		t.pids = []int{s.pid}
	}
	for _, w := range rows {
		for _, sh := range s.shapes {
			r, err := runOnce(t, sh, w, s.seconds)
			if err != nil {
				return err
			}
			h := &r.latencies
			fmt.Printf("%-24s %-6s %9.0f ops/s, p50 %s µs, p99 %s µs, p99.9 %s µs, max %s µs, CPU per op: server %.2f µs, generator %.2f µs\n", w.name, sh,
				r.opsPerSecond(), micros(h.quantile(0.5)), micros(h.quantile(0.99)), micros(h.quantile(0.999)), micros(h.max()), r.cpuPerOp(),
				r.ownCPU.Seconds()*1e6/float64(r.ops))
		}
	}
	return nil
}
