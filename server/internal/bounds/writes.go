package bounds

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gozkd/gozkd/proto"
)

// Writes counts the writes under way and their bytes. A connection that finds the limit reached
// waits, without other locks. Methods may be called from any goroutine.
type Writes struct {
	mu     sync.Mutex
	room   sync.Cond
	n, max int
	// bytes are those of all short writes under way. Above maxBytes, sockets are not read.
	bytes, maxBytes int
	// Long has as many bytes for long frames. A long write that is released gives its place back.
	Long   Places
	window Window // of the long writes
	big    int    // how many of the writes are big
	closed bool

	// A request is large if its frame has more than largeAbove bytes, which is 0 if none is. The
	// large writes under way have large bytes. A large request is refused if they would have more
	// than maxLarge with it; requests that come at the same moment may exceed that.
	largeAbove, maxLarge int
	large                int
}

// Init sets the limits. It must be called once, before any other method: limit is the number of
// writes, maxBytes bounds their bytes; a frame of more than largeAbove bytes is large, or none is
// if that is 0; maxLarge bounds the bytes of large frames.
func (l *Writes) Init(limit, maxBytes, largeAbove, maxLarge int) {
	l.max, l.maxBytes, l.largeAbove, l.maxLarge = limit, maxBytes, largeAbove, maxLarge
	l.Long.limit, l.Long.window = maxBytes, &l.window
	l.window.most, l.window.whole = maxBytes, true
	l.window.resize(0, time.Time{})
	l.room.L = &l.mu
}

// ErrLargeRequest is wrapped by the error of a request that is too much for the large writes that
// are under way.
var ErrLargeRequest = errors.New("a large request")

// IsLarge reports whether a request with a frame of that many bytes is large.
func (l *Writes) IsLarge(frame int) bool { return l.largeAbove > 0 && frame > l.largeAbove }

// CheckLarge returns an error if a request with a frame of that many bytes is large, and too much
// for the large writes under way.
func (l *Writes) CheckLarge(frame int) error {
	if !l.IsLarge(frame) {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.large+frame > l.maxLarge {
		return fmt.Errorf("%w of %d bytes, while others of %d bytes are under way: raise largeRequestMaxBytes, which is %d",
			ErrLargeRequest, frame, l.large, l.maxLarge)
	}
	return nil
}

// add adds a write, or with -1 removes it.
func (l *Writes) add(bytes, sign int) {
	l.n += sign
	frame := bytes + proto.RequestHeaderBytes
	if !IsLong(frame) {
		l.bytes += sign * bytes
	}
	if l.IsLarge(frame) {
		l.large += sign * frame
	}
}

// SetMax changes the limit. Writes that are under way are not affected.
func (l *Writes) SetMax(limit int) {
	l.mu.Lock()
	l.max = limit
	l.room.Broadcast()
	l.mu.Unlock()
}

// full does not depend on the next write, so that a write of any size finds room at some time. Long
// writes do not count: others do not wait for them.
func (l *Writes) full() bool { return l.n >= l.max || l.bytes >= l.maxBytes }

// A multi with a longer body is big: it may take tens of milliseconds to apply. At most maxBig of
// them are under way, so that other writes do not wait for a long row of them.
const (
	bigMultiBytes = 64 << 10
	maxBig        = 2
)

// IsBig reports whether a write of that many bytes is big.
func IsBig(op proto.OpCode, bytes int) bool { return op == proto.OpMulti && bytes > bigMultiBytes }

// RoomForBig reports whether Try can accept a big write.
func (l *Writes) RoomForBig() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.blocked(true)
}

// blocked reports whether a write must wait. l.mu is held.
func (l *Writes) blocked(big bool) bool {
	return !l.closed && (l.full() || big && l.big >= maxBig)
}

// Try adds a write of that many bytes, unless the limit is reached.
func (l *Writes) Try(bytes int, big bool) bool {
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

// Wait returns true when another write may be accepted, or false after patience; 0 is forever.
func (l *Writes) Wait(big bool, patience time.Duration) bool {
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

// Answered notes when a write was proposed that is answered now. The caller releases it.
func (l *Writes) Answered(bytes int, proposed, now time.Time) {
	if frame := bytes + proto.RequestHeaderBytes; IsLong(frame) {
		l.window.note(frame, proposed, now)
	}
}

// Release removes a write that Try or Take added. Its frame must have a place, and have entered the
// window, if it is long.
func (l *Writes) Release(bytes int, big bool) {
	if frame := bytes + proto.RequestHeaderBytes; IsLong(frame) {
		l.Long.Release(frame)
		l.window.Release(frame)
	}
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

// Outstanding returns the number of writes under way.
func (l *Writes) Outstanding() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.n
}

// Close removes the limit, so that nobody waits for writes that will not end.
func (l *Writes) Close() {
	l.mu.Lock()
	l.closed = true
	l.room.Broadcast()
	l.mu.Unlock()
	l.Long.Close()
	l.window.Close()
}

// Take adds a write even if the limit is reached: for connect requests. A client can have only a
// single connect request under way.
func (l *Writes) Take(bytes int) {
	l.mu.Lock()
	l.add(bytes, 1)
	l.mu.Unlock()
}
