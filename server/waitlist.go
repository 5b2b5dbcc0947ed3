package server

import "sync"

// waitList wakes goroutines that wait for the state of the server to change.
type waitList struct {
	mu sync.Mutex
	ch chan struct{} // nil: nobody waits
}

// changed returns a channel that the next wake closes.
func (l *waitList) changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ch == nil {
		l.ch = make(chan struct{})
	}
	return l.ch
}

func (l *waitList) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ch != nil {
		close(l.ch)
		l.ch = nil
	}
}
