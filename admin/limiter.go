package admin

import (
	"sync"
	"time"
)

// limiter lets one through, and the next when some time has passed. Safe for concurrent use.
type limiter struct {
	mu           sync.Mutex // guards the rest
	last, before time.Time  // the last two that were let through; zero: none yet
}

// wait returns 0 if one may go now, else how long it is until then. With an interval that is not positive all may.
func (l *limiter) wait(interval time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if left := interval - now.Sub(l.last); !l.last.IsZero() && left > 0 {
		return left
	}
	l.last, l.before = now, l.last
	return 0
}

// failed takes back what the last one was let through for: it came to nothing.
func (l *limiter) failed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = l.before
}
