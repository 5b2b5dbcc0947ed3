//go:build linux

package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/server"
)

// Rounds are short, so that all pieces on two servers take less than 20 minutes: growth exceeds
// their variation.
const (
	growthRound = 1250 * time.Millisecond
	growthWarm  = 4 * time.Second // of unmeasured load on each new server, for the JVM's compiler
)

// growthPiece is a quantity that grows, and the measurements at each size on a new server.
type growthPiece struct {
	name  string
	title string
	axis  string // the quantity that the size counts
	unit  string // the singular of axis
	sizes []int
	// upTo returns the largest size that this machine allows, 0 for any, and the reason for the
	// limit.
	upTo    func() (int, string)
	measure func(ctx context.Context, g *growth, k kind, size int)
	rates   bool   // also report operations per second
	note    string // how the piece is measured, beyond what all pieces share
}

func growthPieces() []growthPiece {
	return []growthPiece{znodesPiece(), sessionsPiece(), watchesPiece(), watchersPiece(), childrenPiece(), membersPiece(), payloadsPiece()}
}

// benchGrowth measures how costs grow, piece by piece; within a piece the servers take turns at
// each size.
func benchGrowth(ctx context.Context, s *settings) {
	begun := time.Now()
	var chosen []growthPiece
	var names []string
	for _, p := range growthPieces() {
		names = append(names, p.name)
		if strings.HasPrefix(p.name, s.rows) {
			chosen = append(chosen, p)
		}
	}
	if chosen == nil {
		must.Failf("nothing that grows begins with %q: there are %s", s.rows, strings.Join(names, ", "))
	}
	s.out.printf("\nEach size on a new server with %s of unmeasured load, then rounds of %s, one for each figure: short, so single figures vary by a tenth or more.\n"+
		"CPU is the server's, all members added up. Per tenfold: what the figure is multiplied by where the size is ten times as large, by a fit through all sizes;\n"+
		"last step: the same between the two largest sizes alone. Grows as: flat, if no figure is far from the mean (%.0f%%) and the last step is as small, else what fits best.\n",
		growthWarm, growthRound, 100*flatOff)
	for i, p := range chosen {
		progress("growth: %d of %d, %s; %s since the start", i+1, len(chosen), p.name, time.Since(begun).Round(time.Second))
		p.grow(ctx, s).print(s.out)
	}
	progress("growth: %s in all", time.Since(begun).Round(time.Second))
}

func (p growthPiece) grow(ctx context.Context, s *settings) *growth {
	g := &growth{piece: p}
	sizes := p.sizes
	if s.sizes != nil {
		sizes = s.sizes
	}
	if p.upTo != nil {
		limit, why := p.upTo()
		for i, size := range sizes {
			if limit > 0 && size > limit {
				sizes = append(sizes[:i:i], limit)
				g.remark("At most %s %s: %s.", thousands(float64(limit)), p.axis, why)
				break
			}
		}
	}
	for _, size := range sizes {
		for _, k := range s.servers {
			begun := time.Now()
			row := fmt.Sprintf("%s, %s %s", p.name, thousands(float64(size)), p.axis)
			if !s.out.attempt(ctx, row, k.name, func() { p.measure(ctx, g, k, size) }) {
				g.remark("%s failed at %s %s: what it did before that is in the figures.", k.name, thousands(float64(size)), p.axis)
				continue
			}
			progress("growth: %s %s: %s done in %s", p.name, thousands(float64(size)), k.name, time.Since(begun).Round(100*time.Millisecond))
		}
	}
	return g
}

// parseSizes parses a comma-separated list of rising whole numbers, such as 1000,1e6. An empty list
// is nil.
func parseSizes(list string) ([]int, error) {
	if list == "" {
		return nil, nil
	}
	var sizes []int
	for _, word := range strings.Split(list, ",") {
		v, err := strconv.ParseFloat(word, 64)
		if err != nil || v != float64(int(v)) || v < 0 || v > 1e8 || len(sizes) > 0 && int(v) <= sizes[len(sizes)-1] {
			return nil, fmt.Errorf("sizes %q: want rising whole numbers with commas between them, as 1000,1e6", list)
		}
		sizes = append(sizes, int(v))
	}
	return sizes, nil
}

// serve starts a server, lets do measure it, and kills it.
func (g *growth) serve(ctx context.Context, k kind, opts server.Options, do func(p *server.Process)) {
	if opts.Keys == nil {
		opts.Keys = growthKeys()
	}
	p := k.start(ctx, opts)
	defer must.Finally(p.Kill)
	do(p)
}

// growthKeys makes servers report how long their checkpoints took.
func growthKeys() map[string]string {
	k := keys()
	k["4lw.commands.whitelist"] = "srvr, mntr"
	return k
}

func targetOf(p *server.Process) target {
	return target{name: p.Name(), addrs: []string{p.Addr()}, pids: []int{p.Pid()}}
}

// warm puts each workload on the server in turn, unmeasured, for growthWarm in all.
func (g *growth) warm(ctx context.Context, t target, ws ...*workload) {
	for _, w := range ws {
		runOnce(t, shape{16, 16}, w.until(ctx), growthWarm/time.Duration(len(ws)))
		must.Do(ctx.Err())
	}
}

// load measures a workload at a shape and records its figures.
func (g *growth) load(ctx context.Context, t target, size int, sh shape, w *workload) {
	awaitIdle(ctx, t.pids)
	r := runOnce(t, sh, w.until(ctx), growthRound)
	must.Do(ctx.Err())
	g.noteLoad(t.name, size, sh.String(), w.name, r)
	progress("growth: %s %s: %s %s %s: %.0f ops/s, p50 %s µs, p99 %s µs, %.2f µs of CPU per op", g.piece.name, thousands(float64(size)), t.name, w.name, sh,
		r.opsPerSecond(), micros(r.latencies.quantile(0.5)), micros(r.latencies.quantile(0.99)), r.cpuPerOp())
}

// until returns w, ending when ctx ends.
func (w *workload) until(ctx context.Context) *workload {
	const every = 64 // checking costs more than making a request
	asked := 0
	copied := *w
	copied.next = func(c *client) bool {
		if asked++; asked%every == 0 && ctx.Err() != nil {
			return false
		}
		return w.next(c)
	}
	return &copied
}

// fillAt creates n znodes over 16 connections. It returns ctx's error if ctx ends first.
func fillAt(ctx context.Context, addr string, n int, data []byte, path func(i int) string) {
	const connections, window = 16, 64
	runOnce(target{addrs: []string{addr}}, shape{connections, window}, creates(connections, n, data, path).until(ctx), 0)
	must.Do(ctx.Err())
}

// fillOne creates a few znodes in sequence, parents first.
func fillOne(addr string, paths ...string) {
	createAll(addr, 1, len(paths), nil, func(i int) string { return paths[i] })
}
