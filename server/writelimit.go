package server

import (
	"errors"
	"fmt"
	"sync"
	"time"

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

	// A request is large if its frame has more than largeAbove bytes, which is 0 if none is. The
	// large writes under way have large bytes. A large request is refused if they would have more
	// than maxLarge with it; requests that come at the same moment may exceed that.
	largeAbove, maxLarge int
	large                int
}

func (l *writeLimit) init(cfg *Config) {
	l.max, l.largeAbove, l.maxLarge = cfg.maxWrites(), cfg.LargeRequestThreshold, cfg.LargeRequestMaxBytes
	l.room.L = &l.mu
}

// errLargeRequest is wrapped by the error of a request that is too much for the large writes that
// are under way.
var errLargeRequest = errors.New("a large request")

func (l *writeLimit) isLarge(frame int) bool { return l.largeAbove > 0 && frame > l.largeAbove }

// checkLarge returns an error if a request with a frame of that many bytes is large, and too much
// for the large writes under way.
func (l *writeLimit) checkLarge(frame int) error {
	if !l.isLarge(frame) {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.large+frame > l.maxLarge {
		return fmt.Errorf("%w of %d bytes, while others of %d bytes are under way: raise largeRequestMaxBytes, which is %d",
			errLargeRequest, frame, l.large, l.maxLarge)
	}
	return nil
}

// add adds a write, or with -1 removes it.
func (l *writeLimit) add(bytes, sign int) {
	l.n += sign
	l.bytes += sign * bytes
	if frame := bytes + proto.RequestHeaderBytes; l.isLarge(frame) {
		l.large += sign * frame
	}
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
// them are under way, so that other writes do not wait for a long row of them.
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
	l.add(bytes, 1)
	if big {
		l.big++
	}
	return true
}

// wait returns true when another write may be accepted, or false after patience; 0 is forever.
func (l *writeLimit) wait(big bool, patience time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	timedOut := false
	if patience > 0 {
		timer := time.AfterFunc(patience, func() {
			l.mu.Lock()
			timedOut = true
			l.room.Broadcast()
			l.mu.Unlock()
		})
		defer timer.Stop()
	}
	for l.blocked(big) && !timedOut {
		l.room.Wait()
	}
	return !l.blocked(big)
}

// release removes a write that try or take added.
func (l *writeLimit) release(bytes int, big bool) {
	l.mu.Lock()
	wasFull := l.full() || big
	l.add(bytes, -1)
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

// take adds a write even if the limit is reached: for connect requests. A client can have only a
// single connect request under way.
func (l *writeLimit) take(bytes int) {
	l.mu.Lock()
	l.add(bytes, 1)
	l.mu.Unlock()
}
