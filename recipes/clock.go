package recipes

import "time"

// clock counts the time since it was made, with the time that the machine was suspended: a server elsewhere counts that too, and the
// runtime's monotonic clock does not.
//
// It is the runtime's clock plus what the operating system tells of suspensions, so that in a bubble of testing/synctest it is the
// bubble's time.
type clock struct {
	origin           time.Time
	suspended        func() time.Duration // how long the machine has been suspended since some moment
	suspendedAtStart time.Duration
}

func newClock(asleep func() time.Duration) *clock {
	return &clock{origin: time.Now(), suspended: asleep, suspendedAtStart: asleep()}
}

func (c *clock) now() time.Duration {
	// The suspensions first: one that falls between the two counts as neither, and is seen by the next look.
	suspended := c.suspended() - c.suspendedAtStart
	return time.Since(c.origin) + suspended
}
