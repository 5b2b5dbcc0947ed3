package wakeup

import "testing"

// TestFired: a value that waits stays, and the end of a channel is one, too.
func TestFired(t *testing.T) {
	waits, closed := make(chan int, 1), make(chan int)
	waits <- 7
	close(closed)
	for range 2 {
		if !Fired(waits) || !Fired(closed) || Fired(make(chan int, 1)) || Fired[int](nil) {
			t.Errorf("%v for a value, %v for a closed channel", Fired(waits), Fired(closed))
		}
	}
	if got := <-waits; got != 7 {
		t.Errorf("the value is %d", got)
	}
}

// TestBroadcast: a Send wakes all who have asked before it, and nobody who asks afterwards.
func TestBroadcast(t *testing.T) {
	var b Broadcast
	b.Send() // nobody waits
	first, second := b.Next(), b.Next()
	b.Send()
	<-first
	<-second
	select {
	case <-b.Next():
		t.Error("who asked after the Send was woken by it")
	default:
	}
}
