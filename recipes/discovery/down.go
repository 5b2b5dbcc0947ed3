package discovery

import (
	"sync"
	"time"
)

// DownPolicy says when an instance is not given out: for Window from the first error on, once there were Errors of them. The zero value is
// Curator's: two errors, 30 s.
type DownPolicy struct {
	Errors int
	Window time.Duration
}

func (p DownPolicy) orDefault() DownPolicy {
	if p.Errors <= 0 {
		p.Errors = 2
	}
	if p.Window <= 0 {
		p.Window = 30 * time.Second
	}
	return p
}

// identity tells instances apart. One that was registered anew is another, and is up.
type identity struct {
	name, id, address string
	port, sslPort     int
	registered        int64
}

func (in Instance[T]) identity() identity {
	return identity{in.Name, in.ID, in.Address, in.Port, in.SSLPort, millis(in.Registered)}
}

// down counts errors of instances.
type down struct {
	policy DownPolicy

	mu     sync.Mutex
	errors map[identity]*count
	sweep  time.Time // then those that are over are dropped
}

type count struct {
	first time.Time
	n     int
}

func newDown(p DownPolicy) *down {
	return &down{policy: p.orDefault(), errors: make(map[identity]*count)}
}

func (d *down) note(in identity) {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !now.Before(d.sweep) {
		for other, c := range d.errors {
			if d.over(c, now) {
				delete(d.errors, other)
			}
		}
		d.sweep = now.Add(d.policy.Window)
	}
	c := d.errors[in]
	if c == nil || d.over(c, now) {
		c = &count{first: now}
		d.errors[in] = c
	}
	c.n++
}

func (d *down) is(in identity) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.errors[in]
	return c != nil && c.n >= d.policy.Errors && !d.over(c, time.Now())
}

func (d *down) over(c *count, now time.Time) bool { return now.Sub(c.first) >= d.policy.Window }
