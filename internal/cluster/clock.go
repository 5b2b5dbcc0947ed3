package cluster

import (
	"sync"
	"sync/atomic"
	"time"
)

// offset is the time that Advance has added, for all members of a cluster.
type offset struct{ by atomic.Int64 }

func (s *offset) add(d time.Duration) { s.by.Add(int64(d)) }

// clock is a member's clock. While it is stopped, every caller of now waits. A server reads the
// clock before it does anything, so it stands still, while its sockets accept data like those of a
// stopped process.
type clock struct {
	offset *offset

	mu      sync.Mutex
	changed sync.Cond
	stopped bool
}

func newClock(o *offset) *clock {
	c := &clock{offset: o}
	c.changed.L = &c.mu
	return c
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	for c.stopped {
		c.changed.Wait()
	}
	c.mu.Unlock()
	return time.Now().Add(time.Duration(c.offset.by.Load()))
}

func (c *clock) set(stopped bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = stopped
	c.changed.Broadcast()
}
