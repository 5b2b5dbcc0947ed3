//go:build linux

package main

import (
	"math/bits"
	"time"
)

const (
	subBits    = 6 // 64 steps per power of two: a quantile is at most 1/64 above the truth
	subBuckets = 1 << subBits
)

// histogram counts durations of whole nanoseconds. The zero value is empty. Not safe for concurrent use.
type histogram struct {
	counts [(64 - subBits) * subBuckets]uint32
	n      int64
	max    time.Duration
}

// note counts d once; a negative d counts as 0.
func (h *histogram) note(d time.Duration) {
	d = max(d, 0)
	h.counts[bucketOf(uint64(d))]++
	h.n++
	h.max = max(h.max, d)
}

// add counts all that o counted.
func (h *histogram) add(o *histogram) {
	for i, c := range o.counts {
		h.counts[i] += c
	}
	h.n += o.n
	h.max = max(h.max, o.max)
}

// quantile returns the upper edge of the bucket in which the q-th part of all durations ends, 0 < q <= 1, or 0 if there
// are none. It never exceeds the longest duration.
func (h *histogram) quantile(q float64) time.Duration {
	rank := int64(q*float64(h.n) + 0.5)
	rank = min(max(rank, 1), h.n)
	var seen int64
	for i, c := range h.counts {
		if seen += int64(c); seen >= rank && seen > 0 {
			return min(time.Duration(upperEdge(i)), h.max)
		}
	}
	return 0
}

// bucketOf numbers the buckets without a gap: values below 64 have one each, then each power of two has 64.
func bucketOf(v uint64) int {
	shift := max(bits.Len64(v)-1-subBits, 0)
	return shift*subBuckets + int(v>>shift)
}

// upperEdge returns the largest value in bucket i.
func upperEdge(i int) uint64 {
	if i < 2*subBuckets {
		return uint64(i)
	}
	shift := i/subBuckets - 1
	return uint64(i-shift*subBuckets+1)<<shift - 1
}
