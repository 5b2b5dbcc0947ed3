package memnet

import (
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// side is where those wait who read a stream, or those who write it. The stream's mutex guards it.
type side struct {
	news     sync.Cond // its mutex is the stream's
	closed   bool
	deadline time.Time // zero: none

	// The timer is set only if somebody waits, and stays set when the wait ends, because the next one is likely to last no
	// longer. So it may ring for nobody; whoever it wakes looks again.
	timer *time.Timer // nil: none was needed yet
	rings time.Time   // zero: the timer is not set
}

// err says why nobody can go on here, or nil.
func (e *side) err(torn bool) error {
	switch {
	case e.closed:
		return net.ErrClosed
	case torn:
		return syscall.ECONNRESET
	case !e.deadline.IsZero() && !time.Now().Before(e.deadline):
		return os.ErrDeadlineExceeded
	}
	return nil
}

// wait waits for news, at most until the deadline and, if that is not zero, another instant.
func (e *side) wait(until time.Time) {
	if until.IsZero() || !e.deadline.IsZero() && e.deadline.Before(until) {
		until = e.deadline
	}
	if !until.IsZero() && (e.rings.IsZero() || until.Before(e.rings)) {
		e.ringAt(until)
	}
	e.news.Wait()
}

func (e *side) ringAt(t time.Time) {
	e.rings = t
	if e.timer == nil {
		e.timer = time.AfterFunc(time.Until(t), e.ring)
		return
	}
	e.timer.Reset(time.Until(t))
}

func (e *side) ring() {
	e.news.L.Lock()
	defer e.news.L.Unlock()
	e.rings = time.Time{}
	e.wake()
}

// wake lets all who wait look again. That is one goroutine mostly, and costs next to nothing if it is none.
func (e *side) wake() { e.news.Broadcast() }

func (e *side) close() {
	e.closed = true
	if e.timer != nil {
		e.timer.Stop()
	}
	e.wake()
}
