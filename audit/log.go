package audit

import (
	"cmp"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/internal/wakeup"
)

const (
	// defaultMaxBytes bounds the memory of events that are not written yet.
	defaultMaxBytes = 8 << 20
	// blockFactor multiplies the memory of events if Options.Block is set. Requests that were under
	// way when the log became full need room for their events, but a log that cannot be written for
	// days must not take all memory.
	blockFactor = 16
	// chunkBytes is about how much is written at once.
	chunkBytes = 64 << 10
	// retryInterval is how often a write is tried again if Options.Block is set.
	retryInterval = time.Second
)

// Options configure a Log.
type Options struct {
	Format Format // default: JSON
	// MaxBytes bounds the memory of events that are not written yet. Default: 8 MiB. Events beyond
	// that are dropped.
	MaxBytes int64
	// Block makes clients wait instead of dropping events, and repeats failed writes. Only beyond
	// 16 times MaxBytes events are dropped.
	Block bool
	// Failed, unless nil, is called when a write fails, and not again until a write succeeds.
	Failed func(error)
}

// Log is a Sink that writes lines from a goroutine of its own. It is safe for concurrent use.
type Log struct {
	out  io.Writer
	opts Options

	bytes          atomic.Int64 // of events that are not written yet
	taken, dropped atomic.Int64

	mu      sync.Mutex // guards these
	waiting []*Event
	missing int64            // events dropped since the last Dropped line
	room    wakeup.Broadcast // sent when the log is no longer full
	closed  bool

	wake    chan struct{}
	closing chan struct{} // closed by Close
	done    chan struct{} // closed when the goroutine has ended

	// Owned by the goroutine.
	buf     []byte
	lines   int64 // in buf
	failing bool  // the last write failed
	torn    bool  // the last write ended within a line
}

// New starts a log that writes to out. The caller must call Close, and may close out afterwards.
func New(out io.Writer, o Options) *Log {
	if o.Format == nil {
		o.Format = JSON
	}
	o.MaxBytes = cmp.Or(o.MaxBytes, defaultMaxBytes)
	if o.Failed == nil {
		o.Failed = func(error) {}
	}
	l := &Log{out: out, opts: o, wake: make(chan struct{}, 1), closing: make(chan struct{}), done: make(chan struct{})}
	// Stopped and awaited by Close.
	go l.run()
	return l
}

// Record queues an event. Record does not wait: without room it drops the event.
func (l *Log) Record(e *Event) {
	limit := l.opts.MaxBytes
	if l.opts.Block {
		limit *= blockFactor
	}
	n := eventBytes(e)
	l.mu.Lock()
	l.taken.Add(1)
	if l.closed || l.bytes.Load()+n > limit {
		l.missing++
		l.dropped.Add(1)
	} else {
		l.bytes.Add(n)
		l.waiting = append(l.waiting, e)
	}
	l.mu.Unlock()
	wakeup.Send(l.wake)
}

// eventBytes estimates the memory of an event. Identities count as well: the connection that shares
// them may end before the event is written.
func eventBytes(e *Event) int64 {
	n := 300 + len(e.Znode) + len(e.Detail)
	for i := range e.IDs {
		n += len(e.IDs[i].Scheme) + len(e.IDs[i].ID)
	}
	for i := range e.ACL {
		n += 48 + len(e.ACL[i].ID.Scheme) + len(e.ACL[i].ID.ID)
	}
	return int64(n)
}

// Full reports whether clients must wait.
func (l *Log) Full() bool { return l.opts.Block && l.bytes.Load() > l.opts.MaxBytes }

// Room returns a channel that is closed when clients need not wait any more.
func (l *Log) Room() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	room := l.room.Next()
	if !l.Full() || l.closed { // written meanwhile
		l.room.Send()
	}
	return room
}

// Counts returns the number of recorded events, and how many of them are missing in the log.
func (l *Log) Counts() (taken, dropped int64) { return l.taken.Load(), l.dropped.Load() }

// Close ends the log after one attempt to write the queued events. Later events are dropped.
func (l *Log) Close() {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.closing)
		l.room.Send()
	}
	l.mu.Unlock()
	<-l.done
}

func (l *Log) run() {
	defer close(l.done)
	for last := false; !last; {
		select {
		case <-l.wake:
		case <-l.closing:
			last = true
		}
		l.writeWaiting()
	}
}

// writeWaiting writes all queued events, then a line with the number of dropped events, if any.
func (l *Log) writeWaiting() {
	l.mu.Lock()
	events, missing := l.waiting, l.missing
	l.waiting, l.missing = nil, 0
	l.mu.Unlock()
	written := int64(0)
	for i, e := range events {
		before := len(l.buf)
		l.buf = l.opts.Format(l.buf, e)
		if len(l.buf) > before {
			l.lines++
		}
		written += eventBytes(e)
		events[i] = nil
		if len(l.buf) >= chunkBytes {
			l.flush()
			l.release(written)
			written = 0
		}
	}
	if missing > 0 {
		l.buf = l.opts.Format(l.buf, &Event{Time: time.Now(), Operation: Dropped, Result: Failure, Count: missing})
	}
	if !l.flush() {
		l.mu.Lock()
		l.missing += missing
		l.mu.Unlock()
	}
	l.release(written)
}

// release subtracts the memory of written events.
func (l *Log) release(bytes int64) {
	l.bytes.Add(-bytes)
	if !l.Full() {
		l.mu.Lock()
		l.room.Send()
		l.mu.Unlock()
	}
}

// flush writes buf and reports success. After a failure flush drops the lines, except that with
// Options.Block it repeats the write until the log is being closed.
func (l *Log) flush() bool {
	rest := l.buf
	if l.torn && len(rest) > 0 {
		rest = append([]byte{'\n'}, rest...)
	}
	ok := true
	for len(rest) > 0 {
		n, err := l.out.Write(rest)
		if n > 0 {
			l.torn = rest[n-1] != '\n'
			rest = rest[n:]
		}
		if err == nil {
			l.failing = false
			continue
		}
		if !l.failing {
			l.failing = true
			l.opts.Failed(err)
		}
		if !l.opts.Block || !l.pause() {
			l.mu.Lock()
			l.missing += l.lines
			l.mu.Unlock()
			l.dropped.Add(l.lines)
			ok = false
			break
		}
	}
	l.buf, l.lines = l.buf[:0], 0
	return ok
}

// pause waits for the next attempt to write, or returns false if the log is being closed.
func (l *Log) pause() bool {
	select {
	case <-time.After(retryInterval):
		return true
	case <-l.closing:
		return false
	}
}
