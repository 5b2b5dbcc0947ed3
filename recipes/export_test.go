package recipes

import "time"

// SuspendedFor makes the Client's clock believe that the machine was suspended for the time that f
// returns.
func SuspendedFor(f func() time.Duration) Option { return func(c *config) { c.suspended = f } }

// ExponentialWith is Exponential with a given source of random numbers in [0, n).
func ExponentialWith(base, limit time.Duration, n int, random func(n int64) int64) RetryPolicy {
	return exponential(base, limit, n, random)
}

// HostPauses returns how long a host provider takes to return n servers that cannot be reached, and
// how long the pauses before the dials are.
func HostPauses(n int) (naming, pauses time.Duration) {
	h := &hostProvider{closing: make(chan struct{}), maxPause: func() time.Duration { return 100 * time.Millisecond }}
	_ = h.Init([]string{"a", "b"}) // never an error
	h.Connected()
	for range n {
		begun := time.Now()
		h.Next()
		named := time.Now()
		h.pauseBeforeDial()
		naming += named.Sub(begun)
		pauses += time.Since(named)
	}
	return naming, pauses
}

// RememberedEphemerals returns how many ephemerals the Client of a wrapped connection remembers.
func RememberedEphemerals(c *Client) int {
	c.core.mu.Lock()
	defer c.core.mu.Unlock()
	return len(c.core.ephemerals)
}
