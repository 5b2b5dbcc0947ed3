package server

import "sync"

// maxOutstandingBytes bounds the bytes of all writes under way. Above it, sockets are not read.
const maxOutstandingBytes = 64 << 20

// writeLimit counts the writes under way and their bytes. A connection that finds the limit reached
// waits, without other locks.
type writeLimit struct {
	mu     sync.Mutex
	room   sync.Cond
	n, max int
	bytes  int
	closed bool
}

func (l *writeLimit) init(limit int) {
	l.max = limit
	l.room.L = &l.mu
}

// setMax changes the limit. Writes that are under way are not affected.
func (l *writeLimit) setMax(limit int) {
	l.mu.Lock()
	l.max = limit
	l.room.Broadcast()
	l.mu.Unlock()
}

// full does not depend on the next write, so that a write of any size finds room at some time.
func (l *writeLimit) full() bool { return l.n >= l.max || l.bytes >= maxOutstandingBytes }

// try adds a write of that many bytes, unless the limit is reached.
func (l *writeLimit) try(bytes int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.full() && !l.closed {
		return false
	}
	l.n++
	l.bytes += bytes
	return true
}

// wait returns when another write may be accepted.
func (l *writeLimit) wait() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.full() && !l.closed {
		l.room.Wait()
	}
}

// release removes a write that try or take added.
func (l *writeLimit) release(bytes int) {
	l.mu.Lock()
	wasFull := l.full()
	l.n--
	l.bytes -= bytes
	if wasFull {
		l.room.Broadcast()
	}
	l.mu.Unlock()
}

func (l *writeLimit) outstanding() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.n
}

// close removes the limit, so that nobody waits for writes that will not end.
func (l *writeLimit) close() {
	l.mu.Lock()
	l.closed = true
	l.room.Broadcast()
	l.mu.Unlock()
}

// take adds a write even if the limit is reached: for connect requests, of which a client can have
// only one under way.
func (l *writeLimit) take(bytes int) {
	l.mu.Lock()
	l.n++
	l.bytes += bytes
	l.mu.Unlock()
}
