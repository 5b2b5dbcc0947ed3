package top

import (
	"math"
	"slices"
	"time"

	"github.com/gozkd/gozkd/internal/probe"
)

// unknown is an unknown rate. It leaves a gap in a trend.
var unknown = math.NaN()

// Rates describe a member between two samples. Unknown values are NaN.
type Rates struct {
	// Requests, Reads and Writes are per second; Requests has pings, but not our words.
	Requests, Reads, Writes float64
	// LatencyMs and FsyncMs are averages over the interval, NaN if nothing happened.
	LatencyMs, FsyncMs float64
	// Outstanding is not a rate; it is here because top shows its trend.
	Outstanding float64
}

func noRates() Rates {
	return Rates{Requests: unknown, Reads: unknown, Writes: unknown, LatencyMs: unknown, FsyncMs: unknown, Outstanding: unknown}
}

// minInterval is the shortest for rates: counters and clock are not read at the same instant.
const minInterval = 50 * time.Millisecond

// counters are the keys of mntr that only grow between resets and restarts.
var counters = []string{
	"uptime", "packets_received", "packets_sent", "cnt_readlatency", "sum_readlatency", "cnt_updatelatency", "sum_updatelatency", "cnt_fsynctime", "sum_fsynctime",
}

// ratesBetween returns the rates from a to b. If a counter decreased, the member was restarted or
// its counters reset. Then no counter can be trusted: it may have passed its old value since.
func ratesBetween(a, b *Sample) Rates {
	r := noRates()
	if b.Err != nil {
		return r
	}
	r.Outstanding = float64(b.State.Outstanding)
	elapsed := b.At.Sub(a.At)
	reset := b.State.Received < a.State.Received || b.State.Sent < a.State.Sent || b.State.Version != a.State.Version ||
		slices.ContainsFunc(counters, func(key string) bool { return growth(a.Monitor, b.Monitor, key) < 0 })
	if a.Err != nil || elapsed < minInterval || reset {
		return r
	}
	seconds := elapsed.Seconds()
	r.Requests = max(0, float64(b.State.Received-a.State.Received-(b.Asked-a.Asked))) / seconds
	reads, readMs := difference(a.Monitor, b.Monitor, "readlatency")
	writes, writeMs := difference(a.Monitor, b.Monitor, "updatelatency")
	r.Reads, r.Writes = reads/seconds, writes/seconds
	r.LatencyMs = mean(reads+writes, readMs+writeMs)
	r.FsyncMs = mean(difference(a.Monitor, b.Monitor, "fsynctime"))
	return r
}

// growth returns by how much a counter has grown.
func growth(a, b probe.Monitor, key string) float64 {
	before, had := a.Float(key)
	after, has := b.Float(key)
	if !had || !has {
		return unknown
	}
	return after - before
}

func difference(a, b probe.Monitor, summary string) (count, sum float64) {
	return growth(a, b, "cnt_"+summary), growth(a, b, "sum_"+summary)
}

// mean returns NaN if count is 0.
func mean(count, sum float64) float64 {
	if !(count > 0) { // NB: also for NaN
		return unknown
	}
	return sum / count
}

// sum adds two rates. An unknown rate counts as 0 unless both are unknown.
func sum(a, b float64) float64 {
	switch {
	case math.IsNaN(a):
		return b
	case math.IsNaN(b):
		return a
	}
	return a + b
}
