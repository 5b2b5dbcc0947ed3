package server

import (
	"cmp"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/gozkd/gozkd/internal/fair"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/internal/meter"
)

// ConnectionThrottle bounds how many connect requests a server answers. Each takes tokens of a
// bucket, which is filled up at an even rate. A request that finds too few tokens is closed without
// an answer, so that its client tries another server. The zero value is no throttle. Names in
// parentheses are ZooKeeper's; Source: ZooKeeper's BlueThrottle.
type ConnectionThrottle struct {
	// Tokens is the size of the bucket (connectionMaxTokens). 0: no throttle.
	Tokens int
	// FillCount tokens are added per FillTime (connectionTokenFillCount, connectionTokenFillTime).
	// Defaults: 1 and 1 ms.
	FillTime  time.Duration
	FillCount int
	// FreezeTime is how often the share of requests that are dropped at random may change
	// (connectionFreezeTime). 0: none are. The share grows by DropIncrease while the bucket is
	// empty, and shrinks by DropDecrease while at most DecreaseRatio of its tokens are missing
	// (connectionDropIncrease, connectionDropDecrease, connectionDecreaseRatio).
	FreezeTime                                time.Duration
	DropIncrease, DropDecrease, DecreaseRatio float64
	// Weighted makes a new session take GlobalWeight tokens, or LocalWeight if it is local, and the
	// claim of an existing session RenewWeight tokens (connection_throttle_weight_enabled and its
	// weights). Tokens and FillCount are then those of new global sessions. Defaults of the
	// weights: 3, 1 and 2.
	Weighted                               bool
	GlobalWeight, LocalWeight, RenewWeight int
}

func (t *ConnectionThrottle) negative() bool {
	return min(t.Tokens, t.FillCount, t.GlobalWeight, t.LocalWeight, t.RenewWeight) < 0 || min(t.FillTime, t.FreezeTime) < 0 ||
		min(t.DropIncrease, t.DropDecrease, t.DecreaseRatio) < 0
}

func (t *ConnectionThrottle) ensureDefaults() {
	t.FillTime = cmp.Or(t.FillTime, time.Millisecond)
	t.FillCount = cmp.Or(t.FillCount, 1)
	t.GlobalWeight = cmp.Or(t.GlobalWeight, 3)
	t.LocalWeight = cmp.Or(t.LocalWeight, 1)
	t.RenewWeight = cmp.Or(t.RenewWeight, 2)
}

// connectBucket holds the tokens of a ConnectionThrottle. A new connectBucket is full. Its methods
// may be called from any goroutine.
type connectBucket struct {
	mu     sync.Mutex // guards all
	tokens fair.Bucket
	filled time.Time // when tokens were added
	frozen time.Time // when drop changed or could have
	drop   float64   // share of the requests that is dropped at random
}

// admit takes the tokens of a connect request, which may be for an existing or a local session. It
// takes none, and returns false, if there are too few, or if random, from 0 to 1, is below the
// share that is dropped at random. admit also returns that share, and how many tokens are missing.
func (b *connectBucket) admit(t *ConnectionThrottle, renew, local bool, now time.Time, random float64) (
	ok bool, drop float64, missing int,
) {
	if t.Tokens == 0 {
		return true, 0, 0
	}
	size, fill, tokens := t.Tokens, t.FillCount, 1
	if t.Weighted {
		size, fill, tokens = size*t.GlobalWeight, fill*t.GlobalWeight, t.GlobalWeight
		switch {
		case renew:
			tokens = t.RenewWeight
		case local:
			tokens = t.LocalWeight
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if now.Sub(b.filled) > t.FillTime {
		b.filled = now
	}
	perSecond := float64(fill) / t.FillTime.Seconds()
	missing = int(math.Ceil(b.tokens.Missing(fair.Limit{PerSecond: perSecond}, b.filled)))
	if over := missing - size; over > 0 { // the size has become smaller
		b.tokens.Take(float64(-over))
		missing = size
	}
	if t.FreezeTime == 0 {
		b.drop = 0
	} else if b.change(t, size, missing, now); random < b.drop {
		return false, b.drop, missing
	}
	if size-missing < tokens {
		return false, b.drop, missing
	}
	b.tokens.Take(float64(tokens))
	return true, b.drop, missing + tokens
}

// change changes the share that is dropped, at most once per FreezeTime.
func (b *connectBucket) change(t *ConnectionThrottle, size, missing int, now time.Time) {
	if now.Sub(b.frozen) <= t.FreezeTime {
		return
	}
	switch {
	case missing == size:
		b.drop = min(b.drop+t.DropIncrease, 1)
	case missing <= int(math.Round(float64(size)*t.DecreaseRatio)):
		b.drop = max(b.drop-t.DropDecrease, 0)
	}
	b.frozen = now
}

func (c newcomer) throttled(r *proto.ConnectRequest) bool {
	s := c.server
	ok, drop, missing := s.strangers.throttle.admit(&s.live.Load().ConnectionThrottle,
		r.SessionID != 0, s.sessions.opensLocal(), time.Now(), rand.Float64())
	s.meter.DropShare.Store(math.Float64bits(drop))
	if !ok {
		s.meter.Count(meter.ConnectionsRejected)
		c.noteTurnedAway(r, "too many connect requests (connectionMaxTokens)")
		c.logger().Warn("client refused: too many connect requests (connectionMaxTokens)", "tokens_missing", missing)
		return true
	}
	s.meter.Record(meter.TokensMissing, int64(missing), 1)
	return false
}
