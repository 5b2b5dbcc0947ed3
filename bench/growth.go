//go:build linux

package main

import (
	"context"
	"fmt"
	"math"
	"slices"
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
	return []growthPiece{
		znodesPiece(), sessionsPiece(), abandonedPiece(), watchesPiece(), watchersPiece(),
		childrenPiece(), membersPiece(), payloadsPiece(),
	}
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

// point is a figure at a size.
type point struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

// fit describes how a figure grows with the size.
type fit struct {
	Exponent   float64 `json:"exponent"`    // of the best fitting power of the size: 0 flat, 1 linear
	PerTenfold float64 `json:"per_tenfold"` // 10^Exponent: the factor per tenfold size
	LastStep   float64 `json:"last_step"`   // the same between the two largest sizes alone, which a large fixed part does not hide
	As         string  `json:"as"`          // the best fitting shape
	Fixed      float64 `json:"fixed"`       // linear is Fixed + Each·size, logarithm is Fixed + Each·log10(size)
	Each       float64 `json:"each"`
	Off        float64 `json:"off"` // root mean square of the relative deviations from the shape
}

const (
	shapeFlat      = "flat"
	shapeLogarithm = "logarithm"
	shapeLinear    = "linear"
	shapePower     = "power"
	shapeUneven    = "uneven" // no shape fits

	// Rounds of the same load vary by flatOff, so anything nearer to a constant is flat. Beyond
	// unevenOff no shape fits.
	flatOff, unevenOff = 0.12, 0.30
	// A power this small is flat too, however uneven: a seventh more per tenfold size.
	flatExponent = 0.06
)

// fitOf finds how points grow, by least squares of relative errors. Sizes and figures that are not
// positive are left out, except that the linear shape accepts a size of 0. It returns false with
// fewer than two sizes.
func fitOf(points []point) (f fit, ok bool) {
	var all, positive []point
	for _, p := range points {
		if p.Y > 0 && p.X >= 0 {
			all = append(all, p)
			if p.X > 0 {
				positive = append(positive, p)
			}
		}
	}
	byX := func(a, b point) int { return int(math.Copysign(1, a.X-b.X)) }
	slices.SortFunc(positive, byX)
	if len(positive) < 2 || positive[0].X == positive[len(positive)-1].X {
		return fit{}, false
	}
	// The power is a straight line through the logarithms.
	logs := make([]point, len(positive))
	for i, p := range positive {
		logs[i] = point{math.Log10(p.X), math.Log10(p.Y)}
	}
	scale, exponent := straight(logs, func(point) float64 { return 1 })
	f.Exponent, f.PerTenfold = exponent, math.Pow(10, exponent)
	a, b := logs[len(logs)-2], logs[len(logs)-1]
	last := (b.Y - a.Y) / (b.X - a.X)
	f.LastStep = math.Pow(10, last)

	relative := func(p point) float64 { return 1 / (p.Y * p.Y) }
	mean, _ := straight(all, relative, 0)
	f.As, f.Fixed, f.Off = shapeFlat, mean, off(all, func(float64) float64 { return mean })
	if math.Abs(last) <= flatOff && (f.Off <= flatOff || math.Abs(exponent) <= flatExponent) {
		return f, true
	}
	f.As, f.Fixed, f.Each = shapePower, 0, 0
	f.Off = off(positive, func(x float64) float64 { return math.Pow(10, scale+exponent*math.Log10(x)) })
	better := func(shape string, of []point, transform func(x float64) float64) {
		moved := make([]point, len(of))
		for i, p := range of {
			moved[i] = point{transform(p.X), p.Y}
		}
		fixed, each := straight(moved, relative)
		if d := off(of, func(x float64) float64 { return fixed + each*transform(x) }); d < f.Off && fixed >= 0 && each > 0 {
			f.As, f.Fixed, f.Each, f.Off = shape, fixed, each, d
		}
	}
	// Two points fit every shape; do not claim a fixed part that was not observed.
	if len(positive) > 2 {
		better(shapeLogarithm, positive, math.Log10)
		better(shapeLinear, all, func(x float64) float64 { return x })
	}
	if f.Off > unevenOff {
		f.As, f.Fixed, f.Each = shapeUneven, 0, 0
	}
	return f, true
}

// straight returns the line fixed + each·x with the least weighted squares. Slopes, if given, fixes
// the slope.
func straight(points []point, weight func(point) float64, slopes ...float64) (fixed, each float64) {
	var w, x, y, xx, xy float64
	for _, p := range points {
		v := weight(p)
		w, x, y, xx, xy = w+v, x+v*p.X, y+v*p.Y, xx+v*p.X*p.X, xy+v*p.X*p.Y
	}
	if len(slopes) > 0 {
		each = slopes[0]
	} else {
		each = (w*xy - x*y) / (w*xx - x*x)
	}
	return (y - each*x) / w, each
}

// off returns the root mean square of the relative errors of shape.
func off(points []point, shape func(x float64) float64) float64 {
	var sum float64
	for _, p := range points {
		d := shape(p.X)/p.Y - 1
		sum += d * d
	}
	return math.Sqrt(sum / float64(len(points)))
}

// word describes the shape.
func (f fit) word(unit string) string {
	switch f.As {
	case shapeLogarithm, shapeLinear:
		each, of := f.Each, "each"
		if f.As == shapeLogarithm {
			of = "per tenfold"
		}
		fixed := number(f.Fixed) + " " + unit
		for n, smaller := smallerUnit(unit); n > 0 && each < 1; n, smaller = smallerUnit(unit) {
			each, unit = each*n, smaller
		}
		return fmt.Sprintf("%s: %s + %s %s %s", f.As, fixed, small3(each), unit, of)
	case shapePower:
		return fmt.Sprintf("power %.2f", f.Exponent)
	}
	return f.As
}

// smallerUnit returns the next smaller unit and how many of these make up the unit, or 0.
func smallerUnit(unit string) (n float64, name string) {
	switch unit {
	case "MiB":
		return 1 << 10, "KiB"
	case "KiB":
		return 1 << 10, "bytes"
	case "ms":
		return 1e3, "µs"
	case "µs":
		return 1e3, "ns"
	}
	return 0, ""
}

// small3 prints three significant digits, however small the number.
func small3(v float64) string {
	if v == 0 || math.Abs(v) >= 1 {
		return number(v)
	}
	return fmt.Sprintf("%.3g", v)
}
