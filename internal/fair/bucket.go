package fair

import (
	"math"
	"time"
)

// Limit bounds the tokens that are taken from a Bucket: Size at once, and PerSecond afterwards.
type Limit struct{ Size, PerSecond float64 }

// Bucket counts the tokens that are missing from a bucket. The zero value is full. It may owe
// tokens. A Limit may differ from call to call: it counts for the time since the previous call. The
// times are of one clock, which may jump. A Bucket is not safe for concurrent use.
type Bucket struct {
	missing float64
	filled  time.Time
}

// Missing returns how many tokens are missing, after adding those that have come until now.
func (b *Bucket) Missing(l Limit, now time.Time) float64 {
	if b.missing > 0 {
		b.missing -= max(0, now.Sub(b.filled).Seconds()) * l.PerSecond
		b.missing = max(0, b.missing)
	}
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
