package server

import (
	"math"
	"math/rand/v2"
	"sync"
	"time"

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

// ensureDefaults sets zero fields to their defaults.
func (t *ConnectionThrottle) ensureDefaults() {
	setDefault(&t.FillTime, time.Millisecond)
	setDefault(&t.FillCount, 1)
	setDefault(&t.GlobalWeight, 3)
	setDefault(&t.LocalWeight, 1)
	setDefault(&t.RenewWeight, 2)
}

// connThrottle is the bucket of a ConnectionThrottle.
type connThrottle struct {
	mu      sync.Mutex // guards all
	missing int        // tokens
	filled  time.Time  // when tokens were added
	frozen  time.Time  // when drop changed or could have
	drop    float64    // share of the requests that are dropped at random
}

// admit takes the tokens of a connect request, and returns false if the request must be dropped. It
// also returns the share of requests that are dropped at random, and how many tokens are missing.
func (t *connThrottle) admit(cfg *ConnectionThrottle, renew, local bool, now time.Time, random float64) (ok bool, drop float64, missing int) {
	if cfg.Tokens == 0 {
		return true, 0, 0
	}
	need, size, fill := 1, cfg.Tokens, cfg.FillCount
	if cfg.Weighted {
		need, size, fill = cfg.GlobalWeight, size*cfg.GlobalWeight, fill*cfg.GlobalWeight
		switch {
		case renew:
			need = cfg.RenewWeight
		case local:
			need = cfg.LocalWeight
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if since := now.Sub(t.filled); since > cfg.FillTime {
		added := float64(since) * float64(fill) / float64(cfg.FillTime)
		t.missing -= int(min(math.Floor(added), float64(t.missing)))
		t.filled = now
	}
	t.missing = min(t.missing, size) // a smaller size came with a Reload
	if cfg.FreezeTime == 0 {
		t.drop = 0
	} else if t.change(cfg, size, now); random < t.drop {
		return false, t.drop, t.missing
	}
	if size-t.missing < need {
		return false, t.drop, t.missing
	}
	t.missing += need
	return true, t.drop, t.missing
}

// change changes the share of requests that are dropped, at most once per FreezeTime.
func (t *connThrottle) change(cfg *ConnectionThrottle, size int, now time.Time) {
	if now.Sub(t.frozen) <= cfg.FreezeTime {
		return
	}
	switch {
	case t.missing == size:
		t.drop = min(t.drop+cfg.DropIncrease, 1)
	case t.missing <= int(math.Round(float64(size)*cfg.DecreaseRatio)):
		t.drop = max(t.drop-cfg.DropDecrease, 0)
	}
	t.frozen = now
}

// throttled reports whether the throttle of connections drops a connect request.
func (c *conn) throttled(r *proto.ConnectRequest) bool {
	s := c.server
	ok, drop, missing := s.port.throttle.admit(&s.live.Load().ConnectionThrottle, r.SessionID != 0, s.opensLocal(), time.Now(), rand.Float64())
	s.meter.DropShare.Store(math.Float64bits(drop))
	if !ok {
		s.meter.Count(meter.ConnectionsRejected)
		c.logger().Warn("client refused: too many connect requests (connectionMaxTokens)", "tokens_missing", missing)
		return true
	}
	s.meter.Record(meter.TokensMissing, int64(missing), 1)
	return false
}
