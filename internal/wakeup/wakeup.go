// Package wakeup wakes goroutines.
package wakeup

// Send wakes the receiver of c, which has capacity 1, unless c is full: then it wakes anyway.
func Send(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Fired reports whether a value waits in c or c is closed.
func Fired[T any](c <-chan T) bool {
	if len(c) > 0 {
		return true
	}
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Broadcast wakes all goroutines that wait for something to change. The zero value is ready to use.
// A mutex of its owner guards it.
type Broadcast struct{ next chan struct{} }

// Next returns the channel that the next Send closes.
func (b *Broadcast) Next() <-chan struct{} {
	if b.next == nil {
		b.next = make(chan struct{})
	}
	return b.next
}

// Send closes the channel of Next, if anybody has asked for it.
func (b *Broadcast) Send() {
	if b.next != nil {
		close(b.next)
		b.next = nil
	}
}
