//go:build linux

package main

import (
	"math"
	"testing"
)

func TestFitOf(t *testing.T) {
	sizes := []float64{1e3, 1e4, 1e5, 1e6}
	for _, test := range []struct {
		name             string
		of               func(x float64) float64
		sizes            []float64
		as               string
		fixed, each      float64
		perTenfold, last float64 // 0: any
	}{
		{"flat", func(float64) float64 { return 7 }, sizes, shapeFlat, 7, 0, 1, 1},
		{"flat but for what rounds vary by", func(x float64) float64 { return 100 + 8*math.Cos(x) }, sizes, shapeFlat, 100, 0, 0, 0},
		{"linear", func(x float64) float64 { return 3 * x }, sizes, shapeLinear, 0, 3, 10, 10},
		{"linear with a fixed part", func(x float64) float64 { return 20 + 0.001*x }, sizes, shapeLinear, 20, 0.001, 0, 1020. / 120},
		{"logarithm", func(x float64) float64 { return 1 + 2*math.Log10(x) }, sizes, shapeLogarithm, 1, 2, 0, 13. / 11},
		{"root", func(x float64) float64 { return 5 * math.Sqrt(x) }, sizes, shapePower, 0, 0, math.Sqrt(10), math.Sqrt(10)},
		{"falls", func(x float64) float64 { return 1e6 / x }, sizes, shapePower, 0, 0, 0.1, 0.1},
		{"a size of nothing", func(x float64) float64 { return 10 + x }, []float64{0, 100, 1e4, 1e6}, shapeLinear, 10, 1, 0, 0},
		{"sizes that are no decades", func(x float64) float64 { return x * x }, []float64{1, 3, 5, 7}, shapePower, 0, 0, 100, 100},
		{"nothing in particular", func(x float64) float64 { return 10 + 1000*float64(int(math.Log10(x))%2) }, sizes, shapeUneven, 0, 0, 0, 0},
	} {
		var points []point
		for _, x := range test.sizes {
			points = append(points, point{x, test.of(x)})
		}
		f, ok := fitOf(points)
		if !ok {
			t.Errorf("%s: no fit", test.name)
			continue
		}
		near := func(what string, got, want, by float64) {
			if math.Abs(got-want) > by*math.Max(math.Abs(want), 1e-3) {
				t.Errorf("%s: %s is %v, want %v; %+v", test.name, what, got, want, f)
			}
		}
		if f.As != test.as {
			t.Errorf("%s: grows as %s, want %s; %+v", test.name, f.As, test.as, f)
			continue
		}
		if test.as != shapePower && test.as != shapeUneven {
			near("the fixed part", f.Fixed, test.fixed, 0.08) // what rounds vary by
			near("the part of each", f.Each, test.each, 1e-6)
		}
		if test.perTenfold != 0 {
			near("per tenfold", f.PerTenfold, test.perTenfold, 1e-6)
			near("the exponent", f.Exponent, math.Log10(test.perTenfold), 1e-6)
		}
		if test.last != 0 {
			near("the last step", f.LastStep, test.last, 1e-6)
		}
	}
}

func TestFitOf_TooFew(t *testing.T) {
	for _, points := range [][]point{nil, {{10, 1}}, {{0, 1}, {10, 1}}, {{10, 0}, {100, 1}}, {{10, 1}, {10, 2}}} {
		if f, ok := fitOf(points); ok {
			t.Errorf("%v fit as %+v", points, f)
		}
	}
	// Two points are no ground to tell a straight line from a power.
	if f, ok := fitOf([]point{{10, 1}, {100, 10}}); !ok || f.As != shapePower || math.Abs(f.Exponent-1) > 1e-9 {
		t.Errorf("two points fit as %+v", f)
	}
}

func TestFit_Word(t *testing.T) {
	for want, test := range map[string]struct {
		f    fit
		unit string
	}{
		"flat":                                     {fit{As: shapeFlat}, "ms"},
		"power 0.52":                               {fit{As: shapePower, Exponent: 0.52}, "ms"},
		"linear: 21.5 MiB + 512 bytes each":        {fit{As: shapeLinear, Fixed: 21.5, Each: 512. / (1 << 20)}, "MiB"},
		"linear: 140 ms + 1.52 µs each":            {fit{As: shapeLinear, Fixed: 140, Each: 0.00152}, "ms"},
		"linear: 0.80 µs + 0.015 ns each":          {fit{As: shapeLinear, Fixed: 0.8, Each: 1.5e-5}, "µs"},
		"logarithm: 10.0 µs + 2.00 µs per tenfold": {fit{As: shapeLogarithm, Fixed: 10, Each: 2}, "µs"},
	} {
		if got := test.f.word(test.unit); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestParseSizes(t *testing.T) {
	if got, err := parseSizes("0,1000,1e7"); err != nil || len(got) != 3 || got[0] != 0 || got[1] != 1000 || got[2] != 10_000_000 {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"x", "1,", "10,1", "5,5", "1.5", "-1", "1e9", "NaN"} {
		if got, err := parseSizes(bad); err == nil {
			t.Errorf("%q: %v", bad, got)
		}
	}
}

func TestManyPath(t *testing.T) {
	for i, want := range map[int]string{0: "/p0000/n0000000", 999_999: "/p0999/n0999999", 9_999_999: "/p9999/n9999999", 1234: "/p0001/n0001234"} {
		if got := manyPath(i); got != want {
			t.Errorf("%d: %s, want %s", i, got, want)
		}
	}
}

func TestPipelinedFor(t *testing.T) {
	for size, want := range map[int]shape{0: {16, 16}, 100: {16, 16}, 10 << 10: {16, 16}, 100 << 10: {16, 2}, largestPayload: {4, 1}} {
		if got := pipelinedFor(size); got != want {
			t.Errorf("%d bytes: %s, want %s", size, got, want)
		}
	}
}
