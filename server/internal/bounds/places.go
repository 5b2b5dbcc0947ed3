package bounds

import (
	"slices"
	"sync"
	"time"
)

// LongFrame is how many bytes of a frame, with its length, are read before it needs a place.
const LongFrame = 32 << 10

// Places bounds the bytes of long frames, from the moment when more than LongFrame of one is read
// until its request is answered. Meanwhile the other long frames wait in their sockets, and go on
// in the order in which they came. Short frames need no place.
//
// Invariant: the places that are taken have at most limit bytes, or there is only one.
type Places struct {
	mu       sync.Mutex // guards all; no other lock is taken while it is held
	limit    int
	used     int // bytes of the places that are taken
	waiting  []place
	arriving []place // those taken whose requests are not accepted
	closed   bool
}

type place struct {
	bytes int
	owner Sender
	since time.Time     // when it was taken or, if the frame is whole, when that arrived
	taken chan struct{} // closed when the place is taken
	whole bool          // the frame has arrived
}

// Sender is the connection on which a frame comes.
type Sender interface {
	Close()
	// Waits returns for how long the server has been waiting for the client.
	Waits() time.Duration
}

// IsLong reports whether a frame needs a place.
func IsLong(frame int) bool { return 4+frame > LongFrame }

// Take waits for a place of that many bytes, for a frame that arrives from owner. When Take has
// waited for patience, it closes the owners that have had a place for as long, and whose frames
// are incomplete, or who do not take their replies meanwhile. A frame above the limit gets a place
// when there is no other.
func (p *Places) Take(bytes int, owner Sender, patience time.Duration) {
	mine := place{bytes: bytes, owner: owner, taken: make(chan struct{})}
	p.mu.Lock()
	p.waiting = append(p.waiting, mine)
	p.grant()
	p.mu.Unlock()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case <-mine.taken:
			return
		case <-timer.C:
			for _, o := range p.overdue(patience) {
				o.Close()
			}
			timer.Reset(patience)
		}
	}
}

// grant gives places to the frames that have waited longest. p.mu is held.
func (p *Places) grant() {
	for len(p.waiting) > 0 && (p.closed || p.used == 0 || p.used+p.waiting[0].bytes <= p.limit) {
		next := p.waiting[0]
		p.waiting = p.waiting[1:]
		p.used += next.bytes
		next.since = time.Now()
		p.arriving = append(p.arriving, next)
		close(next.taken)
	}
}

// overdue returns the owners of places for which the server has been waiting for that long.
func (p *Places) overdue(patience time.Duration) (owners []Sender) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.arriving {
		waits := time.Since(a.since)
		if a.whole {
			waits = min(waits, a.owner.Waits())
		}
		if waits >= patience {
			owners = append(owners, a.owner)
		}
	}
	return owners
}

// Arrived notes that the frame of owner is complete.
func (p *Places) Arrived(owner Sender) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.arriving {
		if p.arriving[i].owner == owner {
			p.arriving[i].whole, p.arriving[i].since = true, time.Now()
		}
	}
}

// Accepted notes that the request of owner is accepted, or never will be.
func (p *Places) Accepted(owner Sender) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.arriving = slices.DeleteFunc(p.arriving, func(a place) bool { return a.owner == owner })
}

// Release gives a place back.
func (p *Places) Release(bytes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used -= bytes
	p.grant()
}

// Held returns the bytes of the places that are taken.
func (p *Places) Held() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used
}

// Close removes the limit, so that nobody waits for places that are not given back.
func (p *Places) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.grant()
}
