package recipes

import "time"

// clock measures the time since its creation, including time during which the machine was
// suspended. A server elsewhere counts that time, but the runtime's monotonic clock does not.
//
// The result is the runtime's clock plus the suspensions that the operating system reports. In a
// testing/synctest bubble, the result is the bubble's time.
type clock struct {
	origin           time.Time
	suspended        func() time.Duration // total time for which the machine was suspended
	suspendedAtStart time.Duration
}

func (c *clock) now() time.Duration {
	// Read the suspensions first: a suspension between the two readings is then missing from this
	// result, and counted by the next call.
	suspended := c.suspended() - c.suspendedAtStart
	return time.Since(c.origin) + suspended
}
