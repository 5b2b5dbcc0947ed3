package server

import (
	"sync"

	"github.com/gozkd/gozkd/proto"
)

// maxOutstandingBytes bounds the bytes of all writes under way. Above it, sockets are not read.
const maxOutstandingBytes = 64 << 20

// writeLimit counts the writes under way and their bytes. A connection that finds the limit reached
// waits, without other locks.
type writeLimit struct {
	mu     sync.Mutex
	room   sync.Cond
	n, max int
	bytes  int
	big    int // how many of the writes are big
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

// A multi with a longer body is big: it may take tens of milliseconds to apply. At most maxBig of
// them are under way, so that other writes do not wait behind a long row of them.
const (
	bigMultiBytes = 64 << 10
	maxBig        = 2
)

func isBig(op proto.OpCode, bytes int) bool { return op == proto.OpMulti && bytes > bigMultiBytes }

// roomForBig reports whether try can accept a big write.
func (l *writeLimit) roomForBig() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.blocked(true)
}

// blocked reports whether a write must wait. l.mu is held.
func (l *writeLimit) blocked(big bool) bool {
	return !l.closed && (l.full() || big && l.big >= maxBig)
}

// try adds a write of that many bytes, unless the limit is reached.
func (l *writeLimit) try(bytes int, big bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.blocked(big) {
		return false
	}
	l.n++
	l.bytes += bytes
	if big {
		l.big++
	}
	return true
}

// wait returns when another write may be accepted.
func (l *writeLimit) wait(big bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.blocked(big) {
		l.room.Wait()
	}
}

// release removes a write that try or take added.
func (l *writeLimit) release(bytes int, big bool) {
	l.mu.Lock()
	wasFull := l.full() || big
	l.n--
	l.bytes -= bytes
	if big {
		l.big--
	}
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
