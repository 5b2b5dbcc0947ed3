package recipes

import "time"

// SuspendedFor makes the Client's clock believe that the machine was suspended for the time that f
// returns.
func SuspendedFor(f func() time.Duration) Option { return func(c *config) { c.suspended = f } }

// ExponentialWith is Exponential with a given source of random numbers in [0, n).
func ExponentialWith(base, limit time.Duration, n int, random func(n int64) int64) RetryPolicy {
	return exponential(base, limit, n, random)
}

// RememberedEphemerals returns how many ephemerals the Client of a wrapped connection remembers.
func RememberedEphemerals(c *Client) int {
	w := c.core.prober.(*wrapped)
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.ephemerals)
}
