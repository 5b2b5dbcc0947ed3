package bounds

import (
	"math"
	"sync"
	"time"

	"github.com/gozkd/gozkd/internal/fair"
)

// Rate is how fast tokens come and go.
type Rate struct {
	Size     int // of the bucket; 0: there is no bound
	Fill     int // Fill tokens are added per FillTime
	FillTime time.Duration
	// FreezeTime is the least time between two changes of the share of requests that is dropped at
	// random; 0: none is dropped at random. The share grows by DropIncrease while the bucket is
	// empty, and shrinks by DropDecrease while at most DecreaseRatio of its tokens are missing.
	FreezeTime                                time.Duration
	DropIncrease, DropDecrease, DecreaseRatio float64
}

// Bucket holds tokens. Each request takes some of them, and is dropped if there are too few. A new
// Bucket is full. Its methods may be called from any goroutine.
type Bucket struct {
	mu     sync.Mutex // guards all
	tokens fair.Bucket
	filled time.Time // when tokens were added
	frozen time.Time // when drop changed or could have
	drop   float64   // share of the requests that is dropped at random
}

// Admit takes tokens. It takes none, and returns false, if there are too few, or if random, from 0
// to 1, is below the share that is dropped at random. Admit also returns that share, and how many
// tokens are missing.
func (b *Bucket) Admit(r *Rate, tokens int, now time.Time, random float64) (ok bool, drop float64, missing int) {
	if r.Size == 0 {
		return true, 0, 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if now.Sub(b.filled) > r.FillTime {
		b.filled = now
	}
	perSecond := float64(r.Fill) / r.FillTime.Seconds()
	missing = int(math.Ceil(b.tokens.Missing(fair.Limit{PerSecond: perSecond}, b.filled)))
	if over := missing - r.Size; over > 0 { // the size has become smaller
		b.tokens.Take(float64(-over))
		missing = r.Size
	}
	if r.FreezeTime == 0 {
		b.drop = 0
	} else if b.change(r, missing, now); random < b.drop {
		return false, b.drop, missing
	}
	if r.Size-missing < tokens {
		return false, b.drop, missing
	}
	b.tokens.Take(float64(tokens))
	return true, b.drop, missing + tokens
}

// change changes the share that is dropped, at most once per FreezeTime.
func (b *Bucket) change(r *Rate, missing int, now time.Time) {
	if now.Sub(b.frozen) <= r.FreezeTime {
		return
	}
	switch {
	case missing == r.Size:
		b.drop = min(b.drop+r.DropIncrease, 1)
	case missing <= int(math.Round(float64(r.Size)*r.DecreaseRatio)):
		b.drop = max(b.drop-r.DropDecrease, 0)
	}
	b.frozen = now
}
