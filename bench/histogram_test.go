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
		d := time.Duration(r.Uint64() >> (23 + r.IntN(41))) // every magnitude up to an hour
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
		if got := h.quantile(q); float64(got) < float64(want)*0.99 || float64(got) > float64(want)*1.01 {
			t.Errorf("quantile(%v) = %d, want %d within 1%%", q, got, want)
		}
	}
	if h.h.TotalCount() != int64(len(all)) {
		t.Errorf("counted %d, want %d", h.h.TotalCount(), len(all))
	}
}

func TestHistogram_Edges(t *testing.T) {
	var h histogram
	if got := h.quantile(0.5); got != 0 {
		t.Errorf("empty: %d", got)
	}
	h.note(-5)
	if got := h.quantile(1); got != 0 {
		t.Errorf("negative counts as %d, want 0", got)
	}
	h.note(2 * longest)
	if got := h.max(); got < longest*99/100 {
		t.Errorf("the longest is %s, want %s", got, longest)
	}
}
