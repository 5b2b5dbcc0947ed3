package facts

import (
	"math"

	"github.com/gozkd/gozkd/internal/histogram"
)

// Summary describes the values of something that happens repeatedly, since the start or the srst
// word. Times are in milliseconds.
type Summary struct {
	Count, Sum, Min, Max int64
	Avg                  float64

	detailed bool
	unit     float64
	values   histogram.Distribution
}

// NewSummary describes values that were recorded in units of 1/unit. A detailed summary has
// percentiles in mntr.
func NewSummary(detailed bool, unit float64, values histogram.Distribution) Summary {
	of := func(v float64) int64 { return int64(v / unit) }
	return Summary{
		Count: values.Count, Sum: of(values.Sum), Min: of(float64(values.Min())), Max: of(float64(values.Max())),
		Avg: Round(values.Mean() / unit), detailed: detailed, unit: unit, values: values,
	}
}

// Detailed reports whether ZooKeeper shows percentiles of this summary.
func (s Summary) Detailed() bool { return s.detailed }

// Quantile returns the value below which the fraction q of all values lies, 0 ≤ q ≤ 1, to an eighth
// of the value, or NaN if there are no values.
func (s Summary) Quantile(q float64) float64 { return quantile(&s.values, q, s.unit) }

func (s Summary) lines(name string, yield func(string, any) bool) {
	if !(yield("avg_"+name, s.Avg) && yield("min_"+name, s.Min) && yield("max_"+name, s.Max) &&
		yield("cnt_"+name, s.Count) && yield("sum_"+name, s.Sum)) || !s.detailed {
		return
	}
	for _, p := range percentiles {
		if !yield(p.prefix+name, int64(math.Round(s.values.Quantile(p.q)/s.unit))) {
			return
		}
	}
}

// Histogram is a Summary with counts by size. Names that end in _seconds are durations.
type Histogram struct {
	values histogram.Distribution
	unit   float64 // values were recorded in units of 1/unit
	powers []int   // the upper bounds, as powers of two of the recorded values
}

// NewHistogram describes values that were recorded in units of 1/unit. The upper bounds of its
// buckets are 2^power recorded units for each of powers, which is not copied.
func NewHistogram(unit float64, powers []int, values histogram.Distribution) Histogram {
	return Histogram{values, unit, powers}
}

// Count returns how many values there are.
func (h Histogram) Count() uint64 { return uint64(h.values.Count) }

// Sum returns the sum of the values.
func (h Histogram) Sum() float64 { return h.values.Sum / h.unit }

// Buckets returns how many values are below each upper bound. The bounds never change.
func (h Histogram) Buckets() map[float64]uint64 {
	buckets := make(map[float64]uint64, len(h.powers))
	for _, p := range h.powers {
		buckets[float64(int64(1)<<p)/h.unit] = h.values.Below(p)
	}
	return buckets
}

// Quantile returns the value below which the fraction q of all values lies, 0 ≤ q ≤ 1, to an eighth
// of the value, or NaN if there are no values.
func (h Histogram) Quantile(q float64) float64 { return quantile(&h.values, q, h.unit) }

func (h Histogram) lines(name string, yield func(string, any) bool) {
	d := &h.values
	if !(yield("avg_"+name, d.Mean()/h.unit) && yield("min_"+name, float64(d.Min())/h.unit) &&
		yield("max_"+name, float64(d.Max())/h.unit) && yield("cnt_"+name, d.Count) && yield("sum_"+name, h.Sum())) {
		return
	}
	for _, p := range percentiles {
		if !yield(p.prefix+name, d.Quantile(p.q)/h.unit) {
			return
		}
	}
}

func quantile(d *histogram.Distribution, q, unit float64) float64 {
	if d.Count == 0 {
		return math.NaN()
	}
	return d.Quantile(q) / unit
}
