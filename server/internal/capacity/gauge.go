package capacity

import (
	"cmp"
	"math"
	"sync"
)

// Usage is the memory that the process uses, in bytes.
type Usage struct {
	Live  int64 // heap that the last collection found in use
	Other int64 // stacks and the runtime's own structures
}

// Gauge computes the ability of a server. It is safe for concurrent use.
type Gauge struct {
	// Allowed bounds the memory of the state and of everything else that lives. 0: no bound.
	Allowed int64

	mu sync.Mutex // guards the fields below
	// besides is the memory besides the state at the last two collections, the last one last; 0
	// before the first.
	besides [2]int64
}

// Collected notes the heap that a collection found in use, and the weight of the state then.
func (g *Gauge) Collected(weight int64, u Usage) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := max(0, u.Live-weight) + u.Other
	g.besides = [2]int64{cmp.Or(g.besides[1], now), now}
}

// Measure returns the ability of the memory. Of what lives besides the state, only what both of the
// last collections found counts: replies on their way, and znodes that were deleted during a
// collection, must not make the state full.
func (g *Gauge) Measure() Ability {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.Allowed <= 0 {
		return Ability{}
	}
	return Ability{Weight: max(1, g.Allowed-min(g.besides[0], g.besides[1])), Cause: Memory}
}

// OnDisk returns the ability of a disk on which a checkpoint may take that many bytes. It takes up
// to twice the weight of the state, because a merge writes new pages before it frees the old ones.
func OnDisk(bytes int64) Ability {
	if bytes == math.MaxInt64 {
		return Ability{}
	}
	return Ability{Weight: max(1, bytes/2), Cause: Disk}
}
