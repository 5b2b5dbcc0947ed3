package bounds

import (
	"sync"
	"sync/atomic"
	"time"
)

// LongFrame is how many bytes of a frame, with its length, are read before it needs a place.
const LongFrame = 32 << 10

// Places bounds the bytes of long frames, from the moment when more than LongFrame of one is read,
// or when its length is read while others wait, until its request is answered. Meanwhile the other
// long frames wait in their sockets, and go on in the order in which they came. Short frames need
// no place.
//
// Invariant: the places that are taken have at most limit bytes, or there is only one.
type Places struct {
	// Lost returns how much of the time between two moments the process stood still. It is set
	// before the first call of Take; nil: never.
	Lost    func(since, now time.Time) time.Duration
	crowded atomic.Bool // frames wait

	mu       sync.Mutex // guards all below
	limit    int
	used     int // bytes of the places that are taken
	waiting  []*Place
	arriving map[*Place]struct{} // those taken whose requests are not accepted
	closed   bool
}

// Place is the place of a frame. Places.mu guards all that changes.
type Place struct {
	Bytes    int
	owner    Sender
	taken    chan struct{} // closed when the place is taken
	since    time.Time     // when it was taken or, if the frame is whole, when that arrived
	progress time.Time     // when bytes of the frame came, or it was taken
	whole    bool          // the frame has arrived
}

// Sender is the connection on which a frame comes.
type Sender interface {
	Close()
	// Waits returns for how long the server has been waiting for the client.
	Waits() time.Duration
}

// IsLong reports whether a frame needs a place.
func IsLong(frame int) bool { return 4+frame > LongFrame }

// Crowded reports whether frames wait for places. Then readers must not hold large buffers.
func (p *Places) Crowded() bool { return p != nil && p.crowded.Load() }

// Take waits for a place of that many bytes, for a frame that arrives from owner. Take closes the
// owners of places that keep others waiting: when Take has waited for patience, those whose frames
// have been arriving for as long, and those who do not take their replies meanwhile; after half of
// patience those whose frames have not gone on for as long. A frame above the limit gets a place
// when there is no other.
func (p *Places) Take(bytes int, owner Sender, patience time.Duration) *Place {
	mine, start := &Place{Bytes: bytes, owner: owner, taken: make(chan struct{})}, time.Now()
	p.mu.Lock()
	p.waiting = append(p.waiting, mine)
	p.grant()
	p.mu.Unlock()
	timer := time.NewTimer(patience / 4)
	defer timer.Stop()
	for {
		select {
		case <-mine.taken:
			return mine
		case <-timer.C:
			for _, o := range p.overdue(start, patience) {
				o.Close()
			}
			timer.Reset(patience / 4)
		}
	}
}

// grant gives places to the frames that have waited longest. p.mu is held.
func (p *Places) grant() {
	for len(p.waiting) > 0 && (p.closed || p.used == 0 || p.used+p.waiting[0].Bytes <= p.limit) {
		next := p.waiting[0]
		p.waiting = p.waiting[1:]
		p.used += next.Bytes
		next.since = time.Now()
		next.progress = next.since
		if p.arriving == nil {
			p.arriving = make(map[*Place]struct{})
		}
		p.arriving[next] = struct{}{}
		close(next.taken)
	}
	p.crowded.Store(len(p.waiting) > 0)
}

// overdue returns the owners of places that keep a frame waiting which has waited since start. The
// time for which the process stood still does not count: what was sent meanwhile is not read yet.
func (p *Places) overdue(start time.Time, patience time.Duration) (owners []Sender) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	elapsed := func(since time.Time) time.Duration {
		if since.Before(start) {
			since = start
		}
		if p.Lost == nil {
			return now.Sub(since)
		}
		return now.Sub(since) - p.Lost(since, now)
	}
	for a := range p.arriving {
		waits := elapsed(a.since)
		if a.whole {
			waits = min(waits, elapsed(now.Add(-a.owner.Waits())))
		}
		if waits >= patience || !a.whole && elapsed(a.progress) >= patience/2 {
			owners = append(owners, a.owner)
		}
	}
	return owners
}

// Progress notes that bytes of a frame came. whole: now it is complete.
func (p *Places) Progress(of *Place, whole bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	of.progress = time.Now()
	if of.whole = whole; whole {
		of.since = of.progress
	}
}

// Accepted notes that the request of a place is accepted, or never will be.
func (p *Places) Accepted(of *Place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.arriving, of)
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
