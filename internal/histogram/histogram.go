// Package histogram counts values by their size, in buckets whose width is a fixed part of the
// value. Recording takes no lock and, after the first value, no memory.
//
// HdrHistogram was considered: its Go version needs a lock around each update, and takes 10 to 100
// times the memory over the same range for digits that nobody reads. See
// docs/reference/monitoring.md.
package histogram

import (
	"math"
	"math/bits"
	"sync/atomic"
)

const (
	// precision is the logarithm to base 2 of the buckets per power of two. Values below
	// 2·2^precision have a bucket each.
	precision = 3
	// maxPower bounds the buckets: values of 2^maxPower or more share the last bucket. In
	// nanoseconds that is more than an hour.
	maxPower = 42
	nBuckets = 2<<precision + (maxPower-precision-1)<<precision
)

// Histogram counts values of 0 and above. The zero value is empty, has a precision of 1/8, and is
// small: the buckets are allocated with the first value. Histogram is safe for concurrent use, and
// recording never waits.
//
// A snapshot that is taken while another goroutine records may contain a value in its sum but not
// yet in its count.
type Histogram struct {
	counts atomic.Pointer[[nBuckets]atomic.Uint64]
	// sum holds the bits of a float64. An int64 of nanoseconds would overflow after some million
	// values if a clock is an hour off.
	sum      atomic.Uint64
	min, max atomic.Int64 // plus one; 0: there is no value
}

func bucket(v int64) int {
	if v < 2<<precision {
		return int(max(v, 0))
	}
	power := bits.Len64(uint64(v)) - 1
	if power >= maxPower {
		return nBuckets - 1
	}
	return 2<<precision + (power-precision-1)<<precision + int(v>>(power-precision))&(1<<precision-1)
}

// start returns the smallest value of bucket i; for nBuckets, where another bucket would start.
func start(i int) int64 {
	if i < 2<<precision {
		return int64(i)
	}
	i -= 2 << precision
	power, part := precision+1+i>>precision, int64(i&(1<<precision-1))
	return 1<<power + part<<(power-precision)
}

// Record counts the value v n times. A negative v counts as 0: the clock was set back.
func (h *Histogram) Record(v int64, n int) {
	v = max(v, 0)
	h.add(v, n, float64(v)*float64(n), v, v)
}

// RecordSum counts n values as n times their mean. They are from low to high, with that sum.
func (h *Histogram) RecordSum(sum int64, n int, low, high int64) {
	if n > 0 {
		h.add(sum/int64(n), n, float64(sum), low, high)
	}
}

func (h *Histogram) add(v int64, n int, sum float64, low, high int64) {
	if n <= 0 {
		return
	}
	counts := h.counts.Load()
	if counts == nil {
		h.counts.CompareAndSwap(nil, new([nBuckets]atomic.Uint64))
		if counts = h.counts.Load(); counts == nil {
			return // Reset was called at this moment
		}
	}
	counts[bucket(v)].Add(uint64(n))
	for {
		old := h.sum.Load()
		if h.sum.CompareAndSwap(old, math.Float64bits(math.Float64frombits(old)+sum)) {
			break
		}
	}
	low, high = min(low, math.MaxInt64-1), min(high, math.MaxInt64-1) // both are stored plus one
	for old := h.min.Load(); (old == 0 || low+1 < old) && !h.min.CompareAndSwap(old, low+1); {
		old = h.min.Load()
	}
	for old := h.max.Load(); high+1 > old && !h.max.CompareAndSwap(old, high+1); {
		old = h.max.Load()
	}
}

// Empty reports whether nothing was recorded since the last Reset.
func (h *Histogram) Empty() bool { return h.counts.Load() == nil }

// Reset discards all values. A value that is recorded at the same moment may be discarded in part.
func (h *Histogram) Reset() {
	h.counts.Store(nil)
	h.sum.Store(0)
	h.min.Store(0)
	h.max.Store(0)
}

// Distribution holds the values of one or more histograms at one moment. The zero value is empty.
type Distribution struct {
	Count int64
	Sum   float64

	min, max int64    // plus one
	buckets  []uint64 // nil: there are no values
}

// Snapshot returns the values of all hs.
func Snapshot(hs ...*Histogram) (d Distribution) {
	for _, h := range hs {
		counts := h.counts.Load()
		if counts == nil {
			continue
		}
		if d.buckets == nil {
			d.buckets = make([]uint64, nBuckets)
		}
		for i := range counts {
			n := counts[i].Load()
			d.buckets[i] += n
			d.Count += int64(n)
		}
		d.Sum += math.Float64frombits(h.sum.Load())
		if low := h.min.Load(); low != 0 && (d.min == 0 || low < d.min) {
			d.min = low
		}
		d.max = max(d.max, h.max.Load())
	}
	return d
}

// Min returns the smallest value, or 0 if there are none.
func (d *Distribution) Min() int64 { return max(d.min-1, 0) }

// Max returns the largest value, or 0 if there are none.
func (d *Distribution) Max() int64 { return max(d.max-1, 0) }

// Mean returns the mean of the values, or 0 if there are none.
func (d *Distribution) Mean() float64 {
	if d.Count == 0 {
		return 0
	}
	return d.Sum / float64(d.Count)
}

// Quantile returns the value below which the fraction q of all values lies, to the histogram's
// precision: the middle of a bucket, but not outside of Min and Max. Quantile returns 0 if there
// are no values.
func (d *Distribution) Quantile(q float64) float64 {
	rank, seen := max(int64(q*float64(d.Count)+0.5), 1), int64(0)
	if d.Count == 0 {
		return 0
	}
	for i, n := range d.buckets {
		if seen += int64(n); seen >= rank {
			middle := float64(start(i))
			if width := start(i+1) - start(i); width > 1 {
				middle += float64(width) / 2
			}
			return min(max(middle, float64(d.Min())), float64(d.Max()))
		}
	}
	return float64(d.Max())
}

// Below returns how many values are less than 2^power.
func (d *Distribution) Below(power int) (n uint64) {
	if d.buckets == nil {
		return 0
	}
	for _, count := range d.buckets[:bucket(1<<power)] {
		n += count
	}
	return n
}
