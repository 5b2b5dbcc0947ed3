package faultproxy

import (
	"net"
	"os"
	"sync"
	"time"
)

// deadline is the time at which a wait ends. The wrapped connection gets the same deadline for its
// own waits.
type deadline struct {
	mu      sync.Mutex
	at      time.Time     // zero: none
	changed chan struct{} // closed at the next change; nil: there is no waiter
}

func (d *deadline) set(at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at = at
	if d.changed != nil {
		close(d.changed)
		d.changed = nil
	}
}

func (d *deadline) get() (at time.Time, changed <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.changed == nil {
		d.changed = make(chan struct{})
	}
	return d.at, d.changed
}

// wait returns nil when over is closed or timer fires; either may be nil. Errors:
// os.ErrDeadlineExceeded at the deadline, which may change during the wait; net.ErrClosed when the
// channel closed is closed.
func (d *deadline) wait(over <-chan struct{}, timer <-chan time.Time, closed <-chan struct{}) error {
	for {
		at, changed := d.get()
		var alarm <-chan time.Time
		var stop = func() bool { return true }
		if !at.IsZero() {
			t := time.NewTimer(time.Until(at))
			alarm, stop = t.C, t.Stop
		}
		select {
		case <-over:
			stop()
			return nil
		case <-timer:
			stop()
			return nil
		case <-closed:
			stop()
			return net.ErrClosed
		case <-alarm:
			return os.ErrDeadlineExceeded
		case <-changed:
			stop()
		}
	}
}
