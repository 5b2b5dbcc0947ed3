//go:build linux

package main

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// longest is the largest duration that a histogram tells apart; longer durations count as this
// long.
const longest = time.Hour

// histogram counts durations to two significant digits. The zero value is empty. Not safe for
// concurrent use.
type histogram struct{ h *hdrhistogram.Histogram }

func (h *histogram) init() *hdrhistogram.Histogram {
	if h.h == nil {
		h.h = hdrhistogram.New(1, int64(longest), 2)
	}
	return h.h
}

// note counts d once; a negative d counts as 0.
func (h *histogram) note(d time.Duration) {
	if err := h.init().RecordValue(int64(min(max(d, 0), longest))); err != nil {
		panic("bench: " + err.Error()) // only values above longest are refused
	}
}

// add counts everything that o counted.
func (h *histogram) add(o *histogram) { h.init().Merge(o.init()) }

// quantile returns the duration that a fraction q of all does not exceed, 0 < q <= 1. Without any
// durations it returns 0.
func (h *histogram) quantile(q float64) time.Duration {
	return time.Duration(h.init().ValueAtQuantile(100 * q))
}

func (h *histogram) max() time.Duration { return time.Duration(h.init().Max()) }

// n returns how many durations were counted.
func (h *histogram) n() int64 { return h.init().TotalCount() }
