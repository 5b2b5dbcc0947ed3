package server

import (
	"cmp"
	"fmt"
	"time"

	"github.com/gozkd/gozkd/internal/memlimit"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/internal/meter"
)

// RequestThrottle bounds the writes under way together with Config.OutstandingLimit, and says what
// becomes of writes that wait for others too long. The zero value is no throttle. Names in
// parentheses are ZooKeeper's; Source: ZooKeeper's RequestThrottler.
//
// ZooKeeper's throttle counts reads too. Here a read is answered at once, or waits for a write of
// its own connection.
type RequestThrottle struct {
	// Limit bounds the writes under way (requestThrottleLimit). 0: no throttle, and the other
	// fields have no effect.
	Limit int
	// StallTime is how often a waiting write is tried (requestThrottleStallTime). Default: 100 ms.
	StallTime time.Duration
	// StaleLatency: a write that has waited longer than the timeout of its session is stale
	// (requestStaleLatencyCheck). It is dropped, and its connection closed, so that no later write
	// overtakes it, unless KeepStale is set (requestThrottleDropStale=false). A write that waits
	// when its connection closes is always dropped.
	StaleLatency, KeepStale bool
	// OpWaitTime is how long a write may wait. Then it is not applied, and answered with
	// ErrThrottledOp (throttledOpWaitTime). 0: forever.
	OpWaitTime time.Duration
}

func (t *RequestThrottle) negative() bool { return t.Limit < 0 || min(t.StallTime, t.OpWaitTime) < 0 }

// ensureThrottles sets zero fields of the throttles, and the limit of writes, to their defaults,
// and returns all errors in them.
func (c *Config) ensureThrottles() (errs []error) {
	c.ConnectionThrottle.ensureDefaults()
	c.RequestThrottle.StallTime = cmp.Or(c.RequestThrottle.StallTime, 100*time.Millisecond)
	c.LargeRequestMaxBytes = cmp.Or(c.LargeRequestMaxBytes, 100<<20)
	c.OutstandingLimit = cmp.Or(c.OutstandingLimit, 1000)
	c.BudgetWait = cmp.Or(c.BudgetWait, time.Second)
	if c.ConnectionThrottle.negative() || c.RequestThrottle.negative() {
		errs = append(errs, fmt.Errorf("server: ConnectionThrottle %+v and RequestThrottle %+v must not have negative fields", c.ConnectionThrottle, c.RequestThrottle))
	}
	return errs
}

func (c *Config) maxWrites() int {
	if limit := c.RequestThrottle.Limit; limit > 0 {
		return min(limit, c.OutstandingLimit)
	}
	return c.OutstandingLimit
}

// maxWriteBytes bounds the bytes of the short writes under way, and those of long requests: 32 MiB,
// or a 64th of the memory if that is less.
func (c *Config) maxWriteBytes() int {
	return int(min(32<<20, max(int64(c.MaxBuffer), memlimit.Available()/64)))
}

// refuseThrottled ends the wait of a write for others. If that was too long, refuseThrottled
// answers the write; otherwise it returns false. c is locked.
func (c *conn) refuseThrottled(r *received) bool {
	m, cfg := &c.server.meter, &c.server.live.Load().RequestThrottle
	waited := time.Since(c.waitsSince)
	c.waitsSince = time.Time{}
	m.Record(meter.Throttled, int64(waited), 1)
	if cfg.Limit > 0 && cfg.StaleLatency && waited > time.Duration(c.timeoutMs)*time.Millisecond {
		m.Count(meter.StaleRequests)
	}
	if cfg.Limit == 0 || cfg.OpWaitTime == 0 || waited <= cfg.OpWaitTime || r.Op == proto.OpCloseSession {
		return false
	}
	m.Count(meter.ThrottledOps)
	c.refuseRequest(r, proto.ErrThrottledOp)
	return true
}
