package memnet

import (
	"math/rand/v2"
	"sync"
	"time"
)

// arrivals wakes the readers of a network's streams when bytes arrive. In virtual time, bytes that
// are sent to several hosts at one moment usually arrive at one moment too, and share a timer.
type arrivals struct {
	mu   sync.Mutex
	last *wakeUp   // the last one that add started; nil: it has fired
	free []*wakeUp // for reuse
}

// wakeUp wakes the readers of streams at a time.
type wakeUp struct {
	at      time.Time
	streams []*stream
	timer   *time.Timer
}

// add calls s.arrivedAt(at) at that time, which is as far ahead as wait says. The caller may hold
// the mutex of the stream.
func (a *arrivals) add(s *stream, at time.Time, wait time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last != nil && a.last.at.Equal(at) {
		a.last.streams = append(a.last.streams, s)
		return
	}
	var w *wakeUp
	if n := len(a.free); n > 0 {
		w, a.free = a.free[n-1], a.free[:n-1]
	} else {
		w = &wakeUp{}
	}
	a.last, w.at, w.streams = w, at, append(w.streams, s)
	if w.timer != nil {
		w.timer.Reset(wait)
		return
	}
	w.timer = time.AfterFunc(wait, func() { a.fire(w) })
}

// fire wakes the readers in random order, which is also the order in which separate timers would
// fire.
func (a *arrivals) fire(w *wakeUp) {
	a.mu.Lock()
	if a.last == w {
		a.last = nil
	}
	a.mu.Unlock()
	if n := len(w.streams); n > 1 {
		rand.Shuffle(n, func(i, j int) { w.streams[i], w.streams[j] = w.streams[j], w.streams[i] })
	}
	for _, s := range w.streams {
		s.arrivedAt(w.at)
	}
	clear(w.streams)
	w.streams = w.streams[:0]
	a.mu.Lock()
	a.free = append(a.free, w)
	a.mu.Unlock()
}
