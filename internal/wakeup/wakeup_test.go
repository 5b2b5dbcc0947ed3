package wakeup

import "testing"

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
