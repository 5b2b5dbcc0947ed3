package cluster

import (
	"sync"
	"sync/atomic"
	"time"
)

// skipped is how much time was let pass in a lab, for all its members.
type offset struct{ by atomic.Int64 }

func (s *offset) add(d time.Duration) { s.by.Add(int64(d)) }

// clock is a member's. While it stands, who asks for the time waits, and a server does nothing without asking: it stands still, while
// its sockets take what comes, as those of a stopped process do.
type clock struct {
	offset *offset

	mu      sync.Mutex
	changed sync.Cond
	stands  bool
}

func newClock(s *offset) *clock {
	c := &clock{offset: s}
	c.changed.L = &c.mu
	return c
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	for c.stands {
		c.changed.Wait()
	}
	c.mu.Unlock()
	return time.Now().Add(time.Duration(c.offset.by.Load()))
}

func (c *clock) set(stands bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stands = stands
	c.changed.Broadcast()
}
