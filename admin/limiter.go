package admin

import (
	"sync"
	"time"
)

// limiter lets one through, and the next when some time has passed. Safe for concurrent use.
type limiter struct {
	mu   sync.Mutex // guards last
	last time.Time  // zero: none yet
}

// allow reports whether one may go now. With an interval that is not positive all may.
func (l *limiter) allow(interval time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if !l.last.IsZero() && now.Sub(l.last) < interval {
		return false
	}
	l.last = now
	return true
}
