package top

import (
	"math"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/probe"
)

// unknown is a rate that can't be told. It is a gap in a trend.
var unknown = math.NaN()

// Rates are what a member did between two samples. What can't be told is NaN.
type Rates struct {
	// Requests, Reads and Writes are per second. Requests are packets without the words of this process, so pings are among them.
	Requests, Reads, Writes float64
	// LatencyMs and FsyncMs are averages over what happened in between, NaN if nothing did.
	LatencyMs, FsyncMs float64
	// Outstanding is no rate; it stands here to have a trend.
	Outstanding float64
}

func noRates() Rates {
	return Rates{Requests: unknown, Reads: unknown, Writes: unknown, LatencyMs: unknown, FsyncMs: unknown, Outstanding: unknown}
}

// shortest is the time below which two samples say nothing about a rate: the member's counters and our clock are not read at the same moment.
const shortest = 50 * time.Millisecond

// counters are those keys of mntr that only grow, but for a reset or a restart.
var counters = []string{
	"uptime", "packets_received", "packets_sent", "cnt_readlatency", "sum_readlatency", "cnt_updatelatency", "sum_updatelatency", "cnt_fsynctime", "sum_fsynctime",
}

// ratesBetween returns what a member did from a to b. If one counter fell, the member was restarted or its counters were reset, and then no
// other counter can be trusted either: one may have been reset, and have overtaken what it was since.
func ratesBetween(a, b *Sample) Rates {
	r := noRates()
	if b.Err != nil {
		return r
	}
	r.Outstanding = float64(b.State.Outstanding)
	elapsed := b.At.Sub(a.At)
	if a.Err != nil || elapsed < shortest || wereReset(a, b) {
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

// wereReset reports whether a counter fell.
func wereReset(a, b *Sample) bool {
	if b.State.Received < a.State.Received || b.State.Sent < a.State.Sent || b.State.Version != a.State.Version {
		return true
	}
	for _, key := range counters {
		before, had := a.Monitor.Float(key)
		after, has := b.Monitor.Float(key)
		if had && has && after < before {
			return true
		}
	}
	return false
}

// difference returns by how much count and sum of a summary grew.
func difference(a, b probe.Monitor, summary string) (count, sum float64) {
	of := func(key string) float64 {
		before, had := a.Float(key)
		after, has := b.Float(key)
		if !had || !has {
			return unknown
		}
		return after - before
	}
	return of("cnt_" + summary), of("sum_" + summary)
}

// mean is NaN for none.
func mean(count, sum float64) float64 {
	if !(count > 0) { // NB: NaN too
		return unknown
	}
	return sum / count
}

// sum adds what is known of two rates.
func sum(a, b float64) float64 {
	switch {
	case math.IsNaN(a):
		return b
	case math.IsNaN(b):
		return a
	}
	return a + b
}
