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
// long frames wait in their sockets, in turns of hosts. Short frames need no place.
type Places struct {
	// Lost returns how much of the time between two moments the process stood still. It is set
	// before the first call of Take; nil: never.
	Lost  func(since, now time.Time) time.Duration
	bytes turns

	mu       sync.Mutex          // guards arriving
	arriving map[*Place]struct{} // those whose requests are not accepted
}

// Place is the place of a frame. It says all that the frame has taken of [Writes], which takes it
// back with Free.
type Place struct {
	Bytes    int
	owner    Sender
	big, in  bool         // has a turn for big writes; has entered the window
	since    time.Time    // when the place was taken
	progress atomic.Int64 // the time from since until the last bytes of the frame came
	whole    atomic.Bool  // the frame has arrived: progress no longer changes
}

// Sender is the connection on which a frame comes.
type Sender interface {
	Close()
	// Host returns the host whose frames wait in one line.
	Host() string
	// Waits returns for how long the server has been waiting for the client.
	Waits() time.Duration
	// Gone reports whether the connection is closed, or the client has ended it.
	Gone() bool
}

// IsLong reports whether a frame needs a place.
func IsLong(frame int) bool { return 4+frame > LongFrame }

// Crowded reports whether frames wait for places. Then readers must not hold large buffers.
func (p *Places) Crowded() bool { return p.bytes.waiting.Load() }

// Take waits for a place of that many bytes, for a frame that arrives from owner. Take closes the
// owners of places that keep others waiting: when Take has waited for patience, those whose frames
// have been arriving for as long, and those who do not take their replies meanwhile; after half of
// patience those whose frames have not gone on for as long. A frame above the limit gets a place
// when there is no other. Take returns nil if owner is gone.
func (p *Places) Take(bytes int, owner Sender, patience time.Duration) *Place {
	start := time.Now()
	free := func() {
		for _, o := range p.overdue(start, patience) {
			o.Close()
		}
	}
	if !p.bytes.take(bytes, owner, patience, free) {
		return nil
	}
	taken := &Place{Bytes: bytes, owner: owner, since: time.Now()}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.arriving == nil {
		p.arriving = make(map[*Place]struct{})
	}
	p.arriving[taken] = struct{}{}
	return taken
}

// overdue returns the owners of places that keep a frame waiting which has waited since start. The
// time for which the process stood still does not count: bytes sent meanwhile are not read yet.
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
		waits, whole := elapsed(a.since), a.whole.Load()
		progress := a.since.Add(time.Duration(a.progress.Load()))
		if whole {
			waits = min(elapsed(progress), elapsed(now.Add(-a.owner.Waits())))
		}
		if waits >= patience || !whole && elapsed(progress) >= patience/2 {
			owners = append(owners, a.owner)
		}
	}
	return owners
}

// Progress notes that bytes of the frame came. whole: now it is complete.
func (of *Place) Progress(whole bool) {
	of.progress.Store(int64(time.Since(of.since)))
	of.whole.Store(whole)
}

// HasEntered reports whether Enter has let the write in. Only the frame's reader may call it.
func (of *Place) HasEntered() bool { return of.in }

// Accepted notes that the request of a place is accepted, or never will be.
func (p *Places) Accepted(of *Place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.arriving, of)
}

// Held returns the bytes of the places that are taken.
func (p *Places) Held() int { return p.bytes.held() }
