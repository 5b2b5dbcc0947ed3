// Package limit bounds how often something happens, per key, in bounded memory.
package limit

import (
	"sync"
	"time"
)

// Buckets holds a bucket of tokens for each key. Its methods may be called from any goroutine.
type Buckets struct {
	rate  float64 // tokens per second
	burst float64
	half  int // keys per generation
	now   func() time.Time

	mu sync.Mutex // guards the fields below
	// A key that was used lately is in recent. When recent is full, it becomes old, and old is
	// forgotten.
	recent, old map[string]bucket
}

type bucket struct {
	tokens float64
	at     time.Time
}

// New returns full buckets of burst tokens that fill at a rate per second. It remembers at least
// half of maxKeys keys, and forgets keys that were not used for longest. now is the clock.
func New(rate, burst float64, maxKeys int, now func() time.Time) *Buckets {
	return &Buckets{rate: rate, burst: burst, half: max(maxKeys/2, 1), now: now, recent: make(map[string]bucket)}
}

// Take takes a token. If there is none, it returns how long it takes until there is.
func (b *Buckets) Take(key string) (wait time.Duration, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := b.fill(key)
	if k.tokens < 1 {
		return time.Duration((1 - k.tokens) / b.rate * float64(time.Second)), false
	}
	k.tokens--
	b.put(key, k)
	return 0, true
}

// Give gives a token back that Take has taken.
func (b *Buckets) Give(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := b.fill(key)
	k.tokens = min(b.burst, k.tokens+1)
	b.put(key, k)
}

// Has is Take without taking.
func (b *Buckets) Has(key string) (wait time.Duration, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := b.fill(key)
	if k.tokens < 1 {
		return time.Duration((1 - k.tokens) / b.rate * float64(time.Second)), false
	}
	return 0, true
}

// fill returns the bucket of a key as of now. b.mu is held.
func (b *Buckets) fill(key string) bucket {
	now := b.now()
	k, ok := b.recent[key]
	if !ok {
		if k, ok = b.old[key]; !ok {
			return bucket{b.burst, now}
		}
	}
	if passed := now.Sub(k.at); passed > 0 {
		k.tokens, k.at = min(b.burst, k.tokens+passed.Seconds()*b.rate), now
	}
	return k
}

// put stores a bucket. b.mu is held.
func (b *Buckets) put(key string, k bucket) {
	if _, ok := b.recent[key]; !ok && len(b.recent) >= b.half {
		b.old, b.recent = b.recent, make(map[string]bucket)
	}
	b.recent[key] = k
}
