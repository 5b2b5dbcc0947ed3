package fair

import (
	"context"
	"sync"
)

// Gauge bounds how many things are under way at the same time, per key and in all. Its methods may
// be called from any goroutine.
type Gauge struct {
	each, all int

	mu    sync.Mutex // guards the fields below
	byKey map[string]int
	n     int
	room  chan struct{} // closed when a thing has left
}

// NewGauge returns a Gauge with bounds.
func NewGauge(each, all int) *Gauge {
	return &Gauge{each: each, all: all, byKey: make(map[string]int), room: make(chan struct{})}
}

// Enter returns a function that must be called once at the end, or false if there is no room.
func (g *Gauge) Enter(key string) (leave func(), ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.n >= g.all || g.byKey[key] >= g.each {
		return nil, false
	}
	g.n++
	g.byKey[key]++
	return func() { g.leave(key) }, true
}

// Await is Enter for a caller that waits until there is room. ok is false if ctx ends before that.
func (g *Gauge) Await(ctx context.Context, key string) (leave func(), ok bool) {
	for {
		g.mu.Lock()
		room := g.room
		g.mu.Unlock()
		if leave, ok = g.Enter(key); ok {
			return leave, true
		}
		select {
		case <-room:
		case <-ctx.Done():
			return nil, false
		}
	}
}

func (g *Gauge) leave(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.room)
	g.room = make(chan struct{})
	g.n--
	if g.byKey[key]--; g.byKey[key] == 0 {
		delete(g.byKey, key)
	}
}

// Len returns how many things are under way.
func (g *Gauge) Len() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.n
}
