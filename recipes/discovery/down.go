package discovery

import (
	"sync"
	"time"
)

// DownPolicy says when an instance is down: after Errors errors, until Window after the first of
// them. The zero value is Curator's: two errors, 30 s.
type DownPolicy struct {
	Errors int
	Window time.Duration
}

// identity identifies an instance. One that is registered again has another, and is not down.
type identity struct {
	name, id, address string
	port, sslPort     int
	registeredMs      int64
}

func (in Instance[T]) identity() identity {
	return identity{in.Name, in.ID, in.Address, in.Port, in.SSLPort, millis(in.Registered)}
}

type downInstances struct {
	policy DownPolicy

	mu        sync.Mutex
	errors    map[identity]*errorCount
	nextSweep time.Time // when counts whose window is over are dropped
}

type errorCount struct {
	first time.Time
	n     int
}

func newDownInstances(p DownPolicy) *downInstances {
	if p.Errors <= 0 {
		p.Errors = 2
	}
	if p.Window <= 0 {
		p.Window = 30 * time.Second
	}
	return &downInstances{policy: p, errors: make(map[identity]*errorCount)}
}

func (d *downInstances) noteError(in identity) {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !now.Before(d.nextSweep) {
		for other, c := range d.errors {
			if d.isOver(c, now) {
				delete(d.errors, other)
			}
		}
		d.nextSweep = now.Add(d.policy.Window)
	}
	c := d.errors[in]
	if c == nil || d.isOver(c, now) {
		c = &errorCount{first: now}
		d.errors[in] = c
	}
	c.n++
}

func (d *downInstances) contains(in identity) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.errors[in]
	return c != nil && c.n >= d.policy.Errors && !d.isOver(c, time.Now())
}

func (d *downInstances) isOver(c *errorCount, now time.Time) bool {
	return now.Sub(c.first) >= d.policy.Window
}
