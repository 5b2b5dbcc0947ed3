package server

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/internal/bounds"
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

// rate returns what a connect request, for an existing or a local session, takes from which bucket.
func (t *ConnectionThrottle) rate(renew, local bool) (r *bounds.Rate, tokens int) {
	r = &bounds.Rate{
		Size: t.Tokens, Fill: t.FillCount, FillTime: t.FillTime, FreezeTime: t.FreezeTime,
		DropIncrease: t.DropIncrease, DropDecrease: t.DropDecrease, DecreaseRatio: t.DecreaseRatio,
	}
	if !t.Weighted {
		return r, 1
	}
	r.Size, r.Fill = r.Size*t.GlobalWeight, r.Fill*t.GlobalWeight
	switch {
	case renew:
		return r, t.RenewWeight
	case local:
		return r, t.LocalWeight
	}
	return r, t.GlobalWeight
}

// throttled reports whether the throttle of connections drops a connect request.
func (c *conn) throttled(r *proto.ConnectRequest) bool {
	s := c.server
	rate, tokens := s.live.Load().ConnectionThrottle.rate(r.SessionID != 0, s.sessions.opensLocal())
	ok, drop, missing := s.strangers.throttle.Admit(rate, tokens, time.Now(), rand.Float64())
	s.meter.DropShare.Store(math.Float64bits(drop))
	if !ok {
		s.meter.Count(meter.ConnectionsRejected)
		c.logger().Warn("client refused: too many connect requests (connectionMaxTokens)", "tokens_missing", missing)
		return true
	}
	s.meter.Record(meter.TokensMissing, int64(missing), 1)
	return false
}
