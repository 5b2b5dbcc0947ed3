package server

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
		low, next := bucketStart(i), bucketStart(i+1)
		if bucketOf(low) != i || bucketOf(next-1) != i {
			t.Fatalf("bucket %d is of %d to %d, which are in %d and %d", i, low, next, bucketOf(low), bucketOf(next-1))
		}
		if next-low > max(1, low/8) {
			t.Errorf("bucket %d, from %d, is %d wide", i, low, next-low)
		}
	}
	if bucketOf(-1) != 0 || bucketOf(math.MaxInt64) != nBuckets-1 {
		t.Errorf("-1 is in %d, the largest in %d of %d", bucketOf(-1), bucketOf(math.MaxInt64), nBuckets)
	}
}

func TestHistogram_Quantiles(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var h histogram
	var all []int64
	var sum int64
	for range 10_000 {
		v := int64(math.Exp(random.Float64() * 20))
		h.note(v, 1)
		all, sum = append(all, v), sum+v
	}
	slices.Sort(all)
	d := snapshot(&h)
	if d.count != 10_000 || d.sum != float64(sum) || d.min() != all[0] || d.max() != all[len(all)-1] {
		t.Errorf("%d values, sum %v, %d to %d; want sum %d, %d to %d", d.count, d.sum, d.min(), d.max(), sum, all[0], all[len(all)-1])
	}
	for _, q := range []float64{0, 0.5, 0.95, 0.99, 0.999, 1} {
		want := float64(all[min(int(q*10_000), 9_999)])
		if got := d.quantile(q); math.Abs(got-want) > want/8+1 {
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
		if got := d.below(power); got != below {
			t.Errorf("%d are below 2^%d, want %d", got, power, below)
		}
	}
	h.reset()
	if d := snapshot(&h); d.count != 0 || d.sum != 0 || d.min() != 0 || d.max() != 0 || d.quantile(0.5) != 0 || d.mean() != 0 {
		t.Errorf("after the reset: %+v", d)
	}
}

// A clock that is off by hours, for millions of requests, is no reason to tell of negative times.
func TestHistogram_Large(t *testing.T) {
	var h histogram
	hours := int64(10 * time.Hour)
	for range 1000 {
		h.note(hours, 10_000)
	}
	h.note(math.MaxInt64, 1000)
	h.note(-hours, 7)
	d := snapshot(&h)
	if want := 1e7*float64(hours) + 1000*float64(math.MaxInt64); d.count != 10_001_007 || math.Abs(d.sum-want) > want/1e6 || d.min() != 0 || d.max() < math.MaxInt64-1 {
		t.Errorf("%d values, sum %v, %d to %d; want sum %v", d.count, d.sum, d.min(), d.max(), want)
	}
	if s := summary(true, perMs, &h); s.Sum <= 0 || s.Avg <= 0 || s.Min != 0 || s.Max <= 0 {
		t.Errorf("%+v", s)
	}
}

func TestHistogram_Concurrent(t *testing.T) {
	var h histogram
	var noting sync.WaitGroup
	for range 4 { // each ends by itself, awaited below
		noting.Go(func() {
			for i := range int64(1000) {
				h.note(i, 2)
				snapshot(&h)
			}
		})
	}
	noting.Wait()
	if d := snapshot(&h); d.count != 8000 || d.sum != 8*499_500 || d.min() != 0 || d.max() != 999 {
		t.Errorf("%d values, sum %v, %d to %d", d.count, d.sum, d.min(), d.max())
	}
}

func TestHistogram_NoAllocation(t *testing.T) {
	var h histogram
	h.note(1, 1)
	if n := testing.AllocsPerRun(100, func() { h.note(1<<20, 16) }); n != 0 {
		t.Errorf("noting allocates %v times", n)
	}
}

// There are as many namespaces as are bounded for, and one for all others.
func TestNamespaces_Bound(t *testing.T) {
	var s namespaces
	var tl tally
	for i := range 300 {
		path := "/n" + string(rune('0'+i/100)) + string(rune('0'+i/10%10)) + string(rune('0'+i%10)) + "/x"
		tl.read(&s, path, 94)
	}
	tl.settleSpace(0)
	all := s.all()
	if len(all) != maxNamespaces+1 || all[0].name != otherNamespaces {
		t.Fatalf("%d namespaces, the first is %q", len(all), all[0].name)
	}
	if d := snapshot(&all[0].reads); d.count != 200 || d.sum != 200*101 {
		t.Errorf("the others: %d reads, %v bytes", d.count, d.sum)
	}
	for _, c := range [][2]string{{"/", ""}, {"", ""}, {"/a", "a"}, {"/a/b", "a"}, {"a/b", ""}} {
		if got := namespaceOf(c[0]); got != c[1] {
			t.Errorf("the namespace of %q is %q", c[0], got)
		}
	}
}

// A sync is slow when it takes longer than the threshold.
func TestSynced_Slow(t *testing.T) {
	s, err := New(Config{InProcess: true, SyncWarning: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	for _, took := range []time.Duration{0, time.Second, time.Second + 1} {
		s.synced(took, 3, 100)
	}
	if slow, d := s.stats.slowSyncs.Load(), snapshot(&s.stats.appends); slow != 1 || d.count != 3 || d.sum != 9 {
		t.Errorf("%d slow syncs, %d of %v appends", slow, d.count, d.sum)
	}
}

func BenchmarkHistogram(b *testing.B) {
	var h histogram
	b.ReportAllocs()
	for b.Loop() {
		h.note(100_000, 16)
	}
}
