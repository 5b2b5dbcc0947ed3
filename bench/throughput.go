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

// shape is how a load is spread.
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

// measured is all rounds of one row and shape on one server.
type measured struct {
	rates, perCPU []float64 // by round
	latencies     histogram
	ops           int64
	elapsed, own  time.Duration
}

func (m *measured) add(r *result) {
	m.rates = append(m.rates, r.opsPerSecond())
	m.perCPU = append(m.perCPU, r.opsPerCPUSecond())
	m.latencies.add(&r.latencies)
	m.ops += r.ops
	m.elapsed += r.elapsed
	m.own += r.ownCPU
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
	return compareThroughput(ctx, s, rows, targets)
}

// compareThroughput gives each target the same load in turn and prints the tables.
func compareThroughput(ctx context.Context, s *settings, rows []*workload, targets []target) error {
	var rates, latencies [][]string
	for _, w := range rows {
		if s.warm > 0 {
			for _, t := range targets {
				if _, err := runOnce(t, shape{16, 16}, w, s.warm); err != nil {
					return fmt.Errorf("%s: %w", t.name, err)
				}
			}
		}
		for _, sh := range s.shapes {
			seen := make([]measured, len(targets))
			for range s.rounds {
				for i, t := range targets {
					r, err := runOnce(t, sh, w, s.seconds)
					if err != nil {
						return fmt.Errorf("%s: %w", t.name, err)
					}
					seen[i].add(r)
					progress("%-24s %-6s %-16s %9.0f ops/s %9.0f ops/CPU-s", w.name, sh, t.name, r.opsPerSecond(), r.opsPerCPUSecond())
					if ctx.Err() != nil {
						return ctx.Err()
					}
				}
			}
			rates = append(rates, rateRow(w.name, sh, seen))
			for i, t := range targets {
				latencies = append(latencies, latencyRow(w.name, sh, t.name, &seen[i]))
			}
		}
	}
	head := []string{"row", "shape"}
	for _, what := range []string{"ops/s", "ops per server CPU-s"} {
		for _, t := range targets {
			head = append(head, t.name+", "+what)
		}
		if len(targets) > 1 {
			head = append(head, "ratio")
		}
	}
	head = append(head, "generator µs/op (of one CPU)")
	printTable(fmt.Sprintf("Throughput: median of %d rounds of %s (spread)", s.rounds, s.seconds), head, rates)
	printTable("Latency in the same rounds (µs)", []string{"row", "shape", "server", "p50", "p99", "p99.9", "max"}, latencies)
	return nil
}

// runOnce opens new connections for one load, and removes what it made.
func runOnce(t target, sh shape, w *workload, d time.Duration) (*result, error) {
	l, err := openLoad(t.addrs, sh.connections, sh.window)
	if err != nil {
		return nil, err
	}
	r, err := l.run(w, d, t.pids)
	if err == nil && w.undo != nil {
		_, err = l.run(w.undo, 0, nil)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", w.name, err)
	}
	return r, l.close()
}

// rateRow says how fast each server was. The spread is the range of its rounds over their median. The ratio is that of the
// first server's median to the last's, with the lowest and the highest ratio of any two rounds. The last cell is what the
// generator itself used for each server.
func rateRow(row string, sh shape, seen []measured) []string {
	cells := []string{row, sh.String()}
	compare := func(rounds func(*measured) []float64) {
		for i := range seen {
			v := rounds(&seen[i])
			mid := median(v) // sorts
			cells = append(cells, fmt.Sprintf("%s (%.0f%%)", thousands(mid), 100*(v[len(v)-1]-v[0])/mid))
		}
		if len(seen) > 1 {
			a, b := rounds(&seen[0]), rounds(&seen[len(seen)-1])
			cells = append(cells, fmt.Sprintf("%.2f (%.2f to %.2f)", median(a)/median(b), a[0]/b[len(b)-1], a[len(a)-1]/b[0]))
		}
	}
	compare(func(m *measured) []float64 { return m.rates })
	compare(func(m *measured) []float64 { return m.perCPU })
	var busy []string
	for i := range seen {
		m := &seen[i]
		busy = append(busy, fmt.Sprintf("%.2f (%.0f%%)", float64(m.own.Microseconds())/float64(m.ops), 100*m.own.Seconds()/m.elapsed.Seconds()))
	}
	return append(cells, strings.Join(busy, ", "))
}

func latencyRow(row string, sh shape, name string, m *measured) []string {
	h := &m.latencies
	return []string{row, sh.String(), name, micros(h.quantile(0.5)), micros(h.quantile(0.99)), micros(h.quantile(0.999)), micros(h.max)}
}

// benchLoad gives a running server the chosen rows and shapes once each.
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
			fmt.Printf("%-24s %-6s %9.0f ops/s, p50 %s µs, p99 %s µs, p99.9 %s µs, max %s µs, server CPU %s, generator CPU %s\n", w.name, sh,
				r.opsPerSecond(), micros(h.quantile(0.5)), micros(h.quantile(0.99)), micros(h.quantile(0.999)), micros(h.max), r.serverCPU, r.ownCPU)
		}
	}
	return nil
}
