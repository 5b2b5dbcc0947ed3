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
	closed          bool

	// A long frame has a place in Long, which has maxBytes, too. A long write enters the window
	// besides before it is proposed, and before that a big one has one of maxBig turns. Its [Place]
	// says what it has of these, until Free.
	Long   Places
	window window
	big    turns

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
	l.Long.bytes.limit, l.window.most, l.big.limit = maxBytes, maxBytes, maxBig
	l.window.resize(0, time.Time{})
	l.room.L = &l.mu
}

// ErrLargeRequest is wrapped by the error of a request too much for the large writes under way.
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
func (l *Writes) full() bool { return !l.closed && (l.n >= l.max || l.bytes >= l.maxBytes) }

// A multi with a longer body is big: it may take tens of milliseconds to apply. At most maxBig of
// them are under way, so that other writes do not wait for a long row of them.
const (
	bigMultiBytes = 64 << 10
	maxBig        = 2
)

// IsBig reports whether a write of that many bytes is big.
func IsBig(op proto.OpCode, bytes int) bool { return op == proto.OpMulti && bytes > bigMultiBytes }

// Try adds a write of that many bytes, unless the limit is reached.
func (l *Writes) Try(bytes int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.full() {
		return false
	}
	l.add(bytes, 1)
	return true
}

// Wait returns true when another write may be accepted, or false after patience; 0 is forever.
func (l *Writes) Wait(patience time.Duration) bool {
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
	for l.full() && !timedOut {
		l.room.Wait()
	}
	return !l.full()
}

// Enter waits until the write in a long frame, which has arrived, may be proposed. Enter returns
// false if the owner of the place is gone.
func (l *Writes) Enter(of *Place, big bool, patience time.Duration) bool {
	nothing := func() {}
	of.big = big && l.big.take(1, of.owner, patience, nothing)
	of.in = of.big == big && l.window.take(of.Bytes, of.owner, patience, nothing)
	return of.in
}

// Leave undoes Enter: the write cannot be proposed yet.
func (l *Writes) Leave(of *Place) {
	if of.in {
		l.window.release(of.Bytes)
	}
	if of.big {
		l.big.release(1)
	}
	of.in, of.big = false, false
}

// Free gives back the place of a frame whose request is answered, or is not proposed.
func (l *Writes) Free(of *Place) {
	l.Long.Accepted(of)
	l.Long.bytes.release(of.Bytes)
	l.Leave(of)
}

// Answered notes when a write was proposed that is answered now. The caller releases it.
func (l *Writes) Answered(of *Place, proposed, now time.Time) {
	if of != nil {
		l.window.note(of.Bytes, proposed, now)
	}
}

// Release removes a write that Try or Take added, and frees the place of its frame, which is nil if
// the frame is short.
func (l *Writes) Release(bytes int, of *Place) {
	if of != nil {
		l.Free(of)
	}
	l.mu.Lock()
	wasFull := l.full()
	l.add(bytes, -1)
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
	for _, t := range []*turns{&l.Long.bytes, &l.window.turns, &l.big} {
		t.close()
	}
}

// Take adds a write even if the limit is reached: for connect requests. A client can have only a
// single connect request under way.
func (l *Writes) Take(bytes int) {
	l.mu.Lock()
	l.add(bytes, 1)
	l.mu.Unlock()
}
