package server

import "sync"

// limiter counts the writes under way. Who finds it full waits, outside all other locks.
type limiter struct {
	mu     sync.Mutex
	room   sync.Cond
	n, max int
	closed bool
}

func (l *limiter) init(limit int) {
	l.max = limit
	l.room.L = &l.mu
}

// try takes a place if there is one.
func (l *limiter) try() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n >= l.max && !l.closed {
		return false
	}
	l.n++
	return true
}

// wait returns when there may be a place.
func (l *limiter) wait() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.n >= l.max && !l.closed {
		l.room.Wait()
	}
}

func (l *limiter) release(n int) {
	l.mu.Lock()
	wasFull := l.n >= l.max
	l.n -= n
	if wasFull {
		l.room.Broadcast()
	}
	l.mu.Unlock()
}

func (l *limiter) outstanding() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.n
}

// close lets everybody through, so that nobody waits for writes that will not end.
func (l *limiter) close() {
	l.mu.Lock()
	l.closed = true
	l.room.Broadcast()
	l.mu.Unlock()
}

// take takes a place whether there is one or not: for the few requests that a client can't repeat at will.
func (l *limiter) take() {
	l.mu.Lock()
	l.n++
	l.mu.Unlock()
}
