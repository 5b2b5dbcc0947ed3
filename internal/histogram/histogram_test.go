package histogram

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
)

func TestHistogram_Buckets(t *testing.T) {
	for i := range nBuckets {
		low, next := start(i), start(i+1)
		if bucket(low) != i || bucket(next-1) != i {
			t.Fatalf("bucket %d holds %d to %d, which map to %d and %d", i, low, next, bucket(low), bucket(next-1))
		}
		if next-low > max(1, low>>precision) {
			t.Errorf("bucket %d, from %d, is %d wide", i, low, next-low)
		}
	}
	if bucket(-1) != 0 || bucket(math.MaxInt64) != nBuckets-1 {
		t.Errorf("-1 maps to %d, the largest to %d of %d", bucket(-1), bucket(math.MaxInt64), nBuckets-1)
	}
}

func TestHistogram_Quantiles(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var h Histogram
	var all []int64
	var sum int64
	for range 10_000 {
		v := int64(math.Exp(random.Float64() * 20))
		h.Record(v, 1)
		all, sum = append(all, v), sum+v
	}
	slices.Sort(all)
	d := Snapshot(&h)
	if d.Count != 10_000 || d.Sum != float64(sum) || d.Min() != all[0] || d.Max() != all[len(all)-1] {
		t.Errorf("%d values, sum %v, %d to %d; want sum %d, %d to %d", d.Count, d.Sum, d.Min(), d.Max(), sum, all[0], all[len(all)-1])
	}
	for _, q := range []float64{0, 0.5, 0.95, 0.99, 0.999, 1} {
		want := float64(all[min(int(q*10_000), 9_999)])
		if got := d.Quantile(q); math.Abs(got-want) > want/8+1 {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
	for _, power := range []int{0, 1, 4, 5, 10, 20, 30} {
		below := uint64(0)
		for _, v := range all {
			if v < 1<<power {
				below++
			}
		}
		if got := d.Below(power); got != below {
			t.Errorf("%d are below 2^%d, want %d", got, power, below)
		}
	}
	h.Reset()
	if d := Snapshot(&h); d.Count != 0 || d.Sum != 0 || d.Min() != 0 || d.Max() != 0 || d.Quantile(0.5) != 0 || d.Mean() != 0 {
		t.Errorf("after the reset: %+v", d)
	}
}

// A clock that is off by hours, for millions of requests, must not make sums negative.
func TestHistogram_Large(t *testing.T) {
	var h Histogram
	hours := int64(10 * time.Hour)
	for range 1000 {
		h.Record(hours, 10_000)
	}
	h.Record(math.MaxInt64, 1000)
	h.Record(-hours, 7)
	d := Snapshot(&h)
	if want := 1e7*float64(hours) + 1000*float64(math.MaxInt64); d.Count != 10_001_007 || math.Abs(d.Sum-want) > want/1e6 || d.Min() != 0 || d.Max() < math.MaxInt64-1 {
		t.Errorf("%d values, sum %v, %d to %d; want sum %v", d.Count, d.Sum, d.Min(), d.Max(), want)
	}
}

func TestHistogram_Concurrent(t *testing.T) {
	var h Histogram
	var noting sync.WaitGroup
	for range 4 { // each ends by itself, awaited below
		noting.Go(func() {
			for i := range int64(1000) {
				h.Record(i, 2)
				Snapshot(&h)
			}
		})
	}
	noting.Wait()
	if d := Snapshot(&h); d.Count != 8000 || d.Sum != 8*499_500 || d.Min() != 0 || d.Max() != 999 {
		t.Errorf("%d values, sum %v, %d to %d", d.Count, d.Sum, d.Min(), d.Max())
	}
}

func TestHistogram_NoAllocation(t *testing.T) {
	var h Histogram
	h.Record(1, 1)
	if n := testing.AllocsPerRun(100, func() { h.Record(1<<20, 16) }); n != 0 {
		t.Errorf("noting allocates %v times", n)
	}
}

func BenchmarkHistogram(b *testing.B) {
	var h Histogram
	b.ReportAllocs()
	for b.Loop() {
		h.Record(100_000, 16)
	}
}
