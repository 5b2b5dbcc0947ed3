package server

import "sync"

// maxOutstandingBytes is how much the writes under way may hold before sockets are not read.
const maxOutstandingBytes = 64 << 20

// writeLimit counts the writes under way and their bytes. Who finds it full waits, outside all other locks.
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

// setMax changes how many there may be. Those that are under way stay.
func (l *writeLimit) setMax(limit int) {
	l.mu.Lock()
	l.max = limit
	l.room.Broadcast()
	l.mu.Unlock()
}

// full does not depend on what comes next, so that a write of any size finds room some time.
func (l *writeLimit) full() bool { return l.n >= l.max || l.bytes >= maxOutstandingBytes }

// try takes a place for a write of that many bytes if there is one.
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

// wait returns when there may be a place.
func (l *writeLimit) wait() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.full() && !l.closed {
		l.room.Wait()
	}
}

// release gives back what try or take took.
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

// close lets everybody through, so that nobody waits for writes that will not end.
func (l *writeLimit) close() {
	l.mu.Lock()
	l.closed = true
	l.room.Broadcast()
	l.mu.Unlock()
}

// take takes a place whether there is one or not: for the few requests that a client can't repeat at will.
func (l *writeLimit) take(bytes int) {
	l.mu.Lock()
	l.n++
	l.bytes += bytes
	l.mu.Unlock()
}
