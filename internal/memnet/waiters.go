package memnet

import (
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// waiters lets the readers or the writers of a stream wait. The mutex of the stream guards it.
type waiters struct {
	changed  sync.Cond // the stream's mutex is its lock
	closed   bool
	deadline time.Time // zero: none

	// The timer is started when a goroutine waits, and not stopped when the wait ends, because the
	// next wait is likely to end no later. So the timer may fire in vain: a goroutine that wakes
	// must check again.
	timer  *time.Timer // nil: not needed so far
	fireAt time.Time   // zero: the timer is not running
}

// err returns why calls of this kind fail, or nil.
func (w *waiters) err(torn bool) error {
	switch {
	case w.closed:
		return net.ErrClosed
	case torn:
		return syscall.ECONNRESET
	case !w.deadline.IsZero() && !time.Now().Before(w.deadline):
		return os.ErrDeadlineExceeded
	}
	return nil
}

// wait waits for wake, until the deadline, or until the given time unless until is zero.
func (w *waiters) wait(until time.Time) {
	if until.IsZero() || !w.deadline.IsZero() && w.deadline.Before(until) {
		until = w.deadline
	}
	if !until.IsZero() && (w.fireAt.IsZero() || until.Before(w.fireAt)) {
		w.startTimer(until)
	}
	w.changed.Wait()
}

func (w *waiters) startTimer(t time.Time) {
	w.fireAt = t
	if w.timer == nil {
		w.timer = time.AfterFunc(time.Until(t), w.fire)
		return
	}
	w.timer.Reset(time.Until(t))
}

func (w *waiters) fire() {
	w.changed.L.Lock()
	defer w.changed.L.Unlock()
	w.fireAt = time.Time{}
	w.wake()
}

// wake wakes all waiting goroutines, rarely more than one. Without waiters it is cheap.
func (w *waiters) wake() { w.changed.Broadcast() }

func (w *waiters) close() {
	w.closed = true
	if w.timer != nil {
		w.timer.Stop()
	}
	w.wake()
}
