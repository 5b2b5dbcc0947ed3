// Package wakeup wakes goroutines.
package wakeup

// Send wakes the receiver of c, which has capacity 1, unless c is full: then it wakes anyway.
func Send(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
