package fair

import "sync"

// Gauge bounds how many things are under way at the same time, per key and in all. Its methods may
// be called from any goroutine.
type Gauge struct {
	each, all int

	mu    sync.Mutex // guards the fields below
	byKey map[string]int
	n     int
}

// NewGauge returns a Gauge with bounds.
func NewGauge(each, all int) *Gauge {
	return &Gauge{each: each, all: all, byKey: make(map[string]int)}
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

func (g *Gauge) leave(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
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
