package top

import (
	"errors"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/server/facts"
)

func TestRates(t *testing.T) {
	f := newFake(1, facts.Leader)
	a := f.sample(0)
	f.asked += 10 // questions of this process do not count
	f.received += 1000
	f.reads, f.writes, f.readMs = 600, 400, 500
	f.syncs, f.syncMs, f.outstanding = 8, 20, 3
	b := f.sample(2)
	want := Rates{Requests: 500, Reads: 300, Writes: 200, LatencyMs: 0.5, FsyncMs: 2.5, Outstanding: 3}
	if got := ratesBetween(&a, &b); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	idle := f.sample(4)
	if got := ratesBetween(&b, &idle); got.Requests != 0 || !math.IsNaN(got.LatencyMs) || !math.IsNaN(got.FsyncMs) {
		t.Errorf("nothing happened, but %+v", got)
	}
}

// Without mntr, and with the mntr of a server that does not count reads, values are unknown instead
// of 0.
func TestRates_WithoutMonitor(t *testing.T) {
	f := newFake(1, facts.Leader)
	f.only = true
	a := f.sample(0)
	f.received += 100
	b := f.sample(1)
	if got := ratesBetween(&a, &b); got.Requests != 100 || !math.IsNaN(got.Reads) || !math.IsNaN(got.Writes) || !math.IsNaN(got.LatencyMs) {
		t.Errorf("%+v", got)
	}
}

func TestRates_Unknown(t *testing.T) {
	worked := func(change func(f *fake)) (a, b Sample) {
		f := newFake(1, facts.Leader)
		f.work(5000)
		a = f.sample(0)
		f.work(1000)
		change(f)
		return a, f.sample(1)
	}
	for name, change := range map[string]func(f *fake){
		"srst":                               func(f *fake) { f.received = 3 },
		"restart":                            func(f *fake) { f.received, f.uptimeMs = 3, 10 },
		"restart, and more work than before": func(f *fake) { f.received, f.uptimeMs = 9000, 900 },
		"srst, and a counter that overtook":  func(f *fake) { f.received, f.reads = 9000, 10 },
		"restart of another release":         func(f *fake) { f.version = "3.9.6" },
		"srst that only the sums of ms show": func(f *fake) { f.readMs = 0 },
		"down":                               func(f *fake) { f.err = errors.New("connection refused") },
	} {
		a, b := worked(change)
		if got := ratesBetween(&a, &b); !math.IsNaN(got.Requests) || !math.IsNaN(got.Reads) || !math.IsNaN(got.LatencyMs) || !math.IsNaN(got.FsyncMs) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	a, b := worked(func(*fake) {})
	b.At = a.At.Add(time.Millisecond)
	if got := ratesBetween(&a, &b); !math.IsNaN(got.Requests) {
		t.Errorf("a millisecond later: %+v", got)
	}
	b.At = a.At.Add(-time.Second)
	if got := ratesBetween(&a, &b); !math.IsNaN(got.Requests) {
		t.Errorf("a second before: %+v", got)
	}
	a.Err = errors.New("was down")
	b.At = a.At.Add(time.Second)
	if got := ratesBetween(&a, &b); !math.IsNaN(got.Requests) {
		t.Errorf("back again: %+v", got)
	}
}

// No rate is ever negative, infinite, or higher than possible.
func TestRates_NeverAbsurd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newFake(1, facts.Leader)
		at := 0.0
		last := f.sample(at)
		for range rapid.IntRange(1, 30).Draw(t, "rounds") {
			at += rapid.Float64Range(0.001, 5).Draw(t, "seconds")
			most := int64(0)
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0: // srst
				f.received, f.reads, f.writes, f.readMs, f.syncs, f.syncMs = 0, 0, 0, 0, 0, 0
			case 1: // restart
				*f = *newFake(1, facts.Leader)
				f.uptimeMs = 1
			case 2:
				f.err = errors.New("connection refused")
			default:
				f.err = nil
				most = rapid.Int64Range(0, 1e6).Draw(t, "requests")
				f.work(most)
			}
			s := f.sample(at)
			r := ratesBetween(&last, &s)
			for _, v := range []float64{r.Requests, r.Reads, r.Writes, r.LatencyMs, r.FsyncMs, r.Outstanding} {
				if v < 0 || math.IsInf(v, 0) {
					t.Fatalf("%+v", r)
				}
			}
			if r.Requests > float64(most)/minInterval.Seconds() {
				t.Fatalf("%v requests/s of %d", r.Requests, most)
			}
			last = s
		}
	})
}

// A number that is too long for its column shows its end, a name its beginning.
func TestFit(t *testing.T) {
	for _, c := range []struct {
		text  string
		right bool
		want  string
	}{
		{"0x1003700000042", true, "…003700000042"},
		{"0x1003700000042", false, "0x1003700000…"},
		{"0x100000042", true, "  0x100000042"},
		{"0x10000000042", true, "0x10000000042"},
	} {
		if got := fit(c.text, 13, c.right); got != c.want {
			t.Errorf("%s, right: %v: %q, want %q", c.text, c.right, got, c.want)
		}
	}
}
