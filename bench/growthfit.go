//go:build linux

package main

import (
	"fmt"
	"math"
	"slices"
)

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
