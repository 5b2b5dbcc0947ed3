package server

import (
	"math"
	"math/bits"
	"sync/atomic"
)

// A histogram's buckets: values below fineBuckets have one each, and from there on each power of two is cut into fineBuckets/2 of
// the same width, so a value is known to an eighth. What is 2^maxPower or more counts as the largest.
const (
	fineBits    = 4
	fineBuckets = 1 << fineBits
	maxPower    = 42 // in nanoseconds more than an hour
	nBuckets    = fineBuckets + (maxPower-fineBits)*fineBuckets/2
)

// histogram counts values of 0 and above by their size. The zero value is empty and small: the buckets come with the first value.
// Any goroutine may use it at any time; noting takes no lock and no memory, and never waits.
//
// A snapshot that is taken meanwhile may have a value in its sum and not yet among its counts. See docs/reference/monitoring.md for why it is not an
// HDR histogram.
type histogram struct {
	counts   atomic.Pointer[[nBuckets]atomic.Uint64]
	sum      atomic.Uint64 // a float64's bits: nanoseconds of a clock that is an hour off are beyond an int64 after some million values
	low, top atomic.Int64  // the smallest and the largest value, plus one; 0: none
}

func bucketOf(v int64) int {
	if v < fineBuckets {
		return int(max(v, 0))
	}
	power := bits.Len64(uint64(v)) - 1
	if power >= maxPower {
		return nBuckets - 1
	}
	return fineBuckets + (power-fineBits)*fineBuckets/2 + int(v>>(power-fineBits+1))&(fineBuckets/2-1)
}

// bucketStart returns the smallest value of a bucket; of the one behind the last, the value where it would begin.
func bucketStart(i int) int64 {
	if i < fineBuckets {
		return int64(i)
	}
	i -= fineBuckets
	power, part := fineBits+i/(fineBuckets/2), int64(i%(fineBuckets/2))
	return 1<<power + part<<(power-fineBits+1)
}

// note counts a value n times. Below 0 counts as 0: a clock was set back.
func (h *histogram) note(v int64, n int) {
	v = max(v, 0)
	h.add(v, n, float64(v)*float64(n), v, v)
}

// noteRun counts n values that are sum together, low the smallest and top the largest, as n times their mean.
func (h *histogram) noteRun(sum int64, n int, low, top int64) {
	if n > 0 {
		h.add(sum/int64(n), n, float64(sum), low, top)
	}
}

func (h *histogram) add(v int64, n int, sum float64, low, top int64) {
	if n <= 0 {
		return
	}
	counts := h.counts.Load()
	if counts == nil {
		h.counts.CompareAndSwap(nil, new([nBuckets]atomic.Uint64))
		if counts = h.counts.Load(); counts == nil {
			return // it was reset right now
		}
	}
	counts[bucketOf(v)].Add(uint64(n))
	for {
		old := h.sum.Load()
		if h.sum.CompareAndSwap(old, math.Float64bits(math.Float64frombits(old)+sum)) {
			break
		}
	}
	top = min(top, math.MaxInt64-1) // 0 stands for none
	low = min(low, math.MaxInt64-1)
	for old := h.low.Load(); (old == 0 || low+1 < old) && !h.low.CompareAndSwap(old, low+1); {
		old = h.low.Load()
	}
	for old := h.top.Load(); top+1 > old && !h.top.CompareAndSwap(old, top+1); {
		old = h.top.Load()
	}
}

// reset forgets all. What is noted at the same moment may be forgotten in part.
func (h *histogram) reset() {
	h.counts.Store(nil)
	h.sum.Store(0)
	h.low.Store(0)
	h.top.Store(0)
}

// distribution is a histogram at one moment, or several added up.
type distribution struct {
	count, low, top int64
	sum             float64
	buckets         *[nBuckets]uint64 // nil: there are none
}

// snapshot returns the sum of the histograms.
func snapshot(hs ...*histogram) (d distribution) {
	for _, h := range hs {
		counts := h.counts.Load()
		if counts == nil {
			continue
		}
		if d.buckets == nil {
			d.buckets = new([nBuckets]uint64)
		}
		for i := range counts {
			n := counts[i].Load()
			d.buckets[i] += n
			d.count += int64(n)
		}
		d.sum += math.Float64frombits(h.sum.Load())
		if low := h.low.Load(); low != 0 && (d.low == 0 || low < d.low) {
			d.low = low
		}
		d.top = max(d.top, h.top.Load())
	}
	return d
}

func (d *distribution) min() int64 { return max(d.low-1, 0) }
func (d *distribution) max() int64 { return max(d.top-1, 0) }

func (d *distribution) mean() float64 {
	if d.count == 0 {
		return 0
	}
	return d.sum / float64(d.count)
}

// quantile returns the value below which q of all values are, to an eighth of it: the middle of a bucket, within what was seen.
// 0: there are no values.
func (d *distribution) quantile(q float64) float64 {
	rank, seen := max(int64(q*float64(d.count)+0.5), 1), int64(0)
	if d.count == 0 {
		return 0
	}
	for i, n := range d.buckets {
		if seen += int64(n); seen >= rank {
			mid := float64(bucketStart(i))
			if width := bucketStart(i+1) - bucketStart(i); width > 1 {
				mid += float64(width) / 2
			}
			return min(max(mid, float64(d.min())), float64(d.max()))
		}
	}
	return float64(d.max())
}

// below returns how many values are less than a power of two.
func (d *distribution) below(power int) (n uint64) {
	if d.buckets == nil {
		return 0
	}
	for _, count := range d.buckets[:bucketOf(1<<power)] {
		n += count
	}
	return n
}
