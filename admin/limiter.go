package admin

import (
	"sync"
	"time"
)

// limiter admits a caller, and the next caller after an interval. A limiter is safe for concurrent
// use.
type limiter struct {
	mu           sync.Mutex // guards the rest
	last, before time.Time  // when the last two callers were admitted; zero: none yet
}

// wait returns 0 if it admits the caller now, otherwise the remaining time. wait admits all if the
// interval is not positive.
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

// failed withdraws the last admission, because its caller failed.
func (l *limiter) failed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = l.before
}
