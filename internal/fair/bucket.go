package fair

import (
	"math"
	"time"
)

// Limit bounds the tokens that are taken from a Bucket: Size at once, and PerSecond afterwards.
type Limit struct{ Size, PerSecond float64 }

// Bucket counts the tokens that are missing from a bucket. The zero value is full. It may owe
// tokens. A Limit may differ from call to call: it counts for the time since the previous call. The
// times are of one clock. A caller may have read it before others that came first: such a time
// counts as the latest one. A Bucket is not safe for concurrent use.
type Bucket struct {
	missing float64
	filled  time.Time // the latest time
}

// setBack is from how far back on a time means that the clock was set back, which begins anew.
const setBack = time.Minute

// Missing returns how many tokens are missing, after adding those that have come until now.
func (b *Bucket) Missing(l Limit, now time.Time) float64 {
	since := now.Sub(b.filled)
	if since < 0 && since > -setBack {
		return b.missing // the time since filled was added already
	}
	b.missing = max(0, b.missing-max(0, since.Seconds())*l.PerSecond)
	b.filled = now
	return b.missing
}

// Wait returns how long it takes until that many tokens, at most Size, are there.
func (b *Bucket) Wait(l Limit, tokens float64, now time.Time) time.Duration {
	short := b.Missing(l, now) + tokens - l.Size
	return time.Duration(min(max(0, short)/l.PerSecond*float64(time.Second), math.MaxInt64/2))
}

// Take takes tokens, even if they are not there yet: then later calls of Wait count them. Less than
// 0 are given back. Wait or Missing must have been called for the same moment.
func (b *Bucket) Take(tokens float64) { b.missing = max(0, b.missing+tokens) }
