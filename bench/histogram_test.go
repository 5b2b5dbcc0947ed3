//go:build linux

package main

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestHistogram_Quantiles(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var h, half histogram
	var all []time.Duration
	for i := range 20_000 {
		d := time.Duration(r.Uint64() >> (1 + r.IntN(63))) // every magnitude
		all = append(all, d)
		if i%2 == 0 {
			h.note(d)
		} else {
			half.note(d)
		}
	}
	h.add(&half)
	slices.Sort(all)
	for _, q := range []float64{0.0001, 0.5, 0.9, 0.99, 0.999, 1} {
		want := all[int(q*float64(len(all))+0.5)-1]
		got := h.quantile(q)
		if got < want || float64(got) > float64(want)*(1+1.0/subBuckets) {
			t.Errorf("quantile(%v) = %d, want %d or at most 1/%d more", q, got, want, subBuckets)
		}
	}
}

func TestHistogram_Edges(t *testing.T) {
	var h histogram
	if got := h.quantile(0.5); got != 0 {
		t.Errorf("empty: %d", got)
	}
	for i := range len(h.counts) {
		if got := bucketOf(upperEdge(i)); got != i {
			t.Fatalf("bucketOf(upperEdge(%d)) = %d", i, got)
		}
		if i > 0 && bucketOf(upperEdge(i-1)+1) != i {
			t.Fatalf("bucket %d does not begin where %d ends", i, i-1)
		}
	}
	h.note(-5)
	if got := h.quantile(1); got != 0 {
		t.Errorf("negative counts as %d, want 0", got)
	}
}
