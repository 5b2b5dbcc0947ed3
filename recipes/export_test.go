package recipes

import (
	"context"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes/internal/checkedctx"
)

// SuspendedFor makes the Client's clock believe that the machine was suspended for the time that f
// returns.
func SuspendedFor(f func() time.Duration) Option { return func(c *config) { c.suspended = f } }

// ExponentialWith is Exponential with a given source of random numbers in [0, n).
func ExponentialWith(base, limit time.Duration, n int, random func(n int64) int64) RetryPolicy {
	return exponential(base, limit, n, random)
}

// RememberedEphemerals returns how many ephemerals the Client of a wrapped connection remembers.
func RememberedEphemerals(c *Client) int {
	w := c.core.conn.(*wrapped[zk.Event])
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.ephemerals)
}

func (s *Session) WithCancel() (ctx context.Context, cancel context.CancelCauseFunc) {
	return checkedctx.WithCancel(s.ctx)
}

// Remaining returns for how long the session certainly lives if the server is not heard from again;
// 0 after its end.
func (s *Session) Remaining() time.Duration {
	s.check()
	if s.ended.Load() {
		return 0
	}
	return max(0, s.remaining())
}
