package bounds

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// LongFrame is how many bytes of a frame, with its length, are read before it needs a place.
const LongFrame = 32 << 10

// Places bounds the bytes of long frames, from the moment when more than LongFrame of one is read,
// or when its length is read while others wait, until its request is answered. Meanwhile the other
// long frames wait in their sockets. Their hosts take turns, and the frames of a host go on in the
// order in which they came. Short frames need no place.
//
// Invariant: the places that are taken have at most limit bytes, or there is only one.
type Places struct {
	// Lost returns how much of the time between two moments the process stood still. It is set
	// before the first call of Take; nil: never.
	Lost    func(since, now time.Time) time.Duration
	crowded atomic.Bool // frames wait
	window  *Window     // bounds the writes among the requests
	whole   bool        // the frames have arrived, so no place waits for its owner

	mu       sync.Mutex // guards all below
	limit    int
	used     int                 // bytes of the places that are taken
	lines    map[string]*line    // of the hosts whose frames wait
	turns    []*line             // the same, the next one first
	arriving map[*Place]struct{} // those taken whose requests are not accepted
	closed   bool
}

// line holds the frames of a host that wait, at least one, in the order in which they came.
type line struct {
	host   string
	frames []*Place
}

// Place is the place of a frame.
type Place struct {
	Bytes   int
	owner   Sender
	entered bool          // the window
	taken   chan struct{} // closed when the place is taken
	since   time.Time     // when it was taken; set before taken is closed
	// progress is the time from since until the last bytes of the frame came. It no longer changes
	// once whole is set: the frame has arrived.
	progress atomic.Int64
	whole    atomic.Bool
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
func (p *Places) Crowded() bool { return p.crowded.Load() }

// Take waits for a place of that many bytes, for a frame that arrives from owner. Take closes the
// owners of places that keep others waiting: when Take has waited for patience, those whose frames
// have been arriving for as long, and those who do not take their replies meanwhile; after half of
// patience those whose frames have not gone on for as long. A frame above the limit gets a place
// when there is no other. Take returns nil if owner is gone.
func (p *Places) Take(bytes int, owner Sender, patience time.Duration) *Place {
	mine, start, host := &Place{Bytes: bytes, owner: owner, taken: make(chan struct{})}, time.Now(), owner.Host()
	p.mu.Lock()
	if p.lines == nil {
		p.lines, p.arriving = make(map[string]*line), make(map[*Place]struct{})
	}
	its := p.lines[host]
	if its == nil {
		its = &line{host: host}
		p.lines[host], p.turns = its, append(p.turns, its)
	}
	its.frames = append(its.frames, mine)
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
			if owner.Gone() && p.leave(host, mine) {
				return nil
			}
			timer.Reset(patience / 4)
		}
	}
}

// leave takes a frame out of its line, and reports whether it was there.
func (p *Places) leave(host string, of *Place) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	its := p.lines[host]
	if its == nil || !slices.Contains(its.frames, of) {
		return false
	}
	its.frames = slices.DeleteFunc(its.frames, func(o *Place) bool { return o == of })
	if len(its.frames) == 0 {
		delete(p.lines, host)
		p.turns = slices.DeleteFunc(p.turns, func(l *line) bool { return l == its })
	}
	p.grant()
	return true
}

// grant gives places to the frames whose turn it is. None overtakes a frame that is too long for
// the room that is left. p.mu is held.
func (p *Places) grant() {
	for len(p.turns) > 0 {
		its := p.turns[0]
		next := its.frames[0]
		if !p.closed && p.used != 0 && p.used+next.Bytes > p.limit {
			break
		}
		p.turns, its.frames = p.turns[1:], its.frames[1:]
		if len(its.frames) > 0 {
			p.turns = append(p.turns, its)
		} else {
			delete(p.lines, its.host)
		}
		p.used += next.Bytes
		next.since = time.Now()
		if !p.whole {
			p.arriving[next] = struct{}{}
		}
		close(next.taken)
	}
	p.crowded.Store(len(p.turns) > 0)
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

// Accepted notes that the request of a place is accepted, or never will be.
func (p *Places) Accepted(of *Place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.arriving, of)
}

// HasEntered reports whether the write of a frame has entered. Only the frame's reader may call it.
func (of *Place) HasEntered() bool { return of.entered }

// Enter waits until the write in a frame that has arrived may be proposed, see [Window]. Enter
// returns false if the owner is gone.
func (p *Places) Enter(of *Place, patience time.Duration) bool {
	of.entered = p.window.Take(of.Bytes, of.owner, patience) != nil
	return of.entered
}

// Abandon gives back the place of a frame whose request is not proposed.
func (p *Places) Abandon(of *Place) {
	p.Accepted(of)
	p.Release(of.Bytes)
	if of.entered {
		p.window.Release(of.Bytes)
	}
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
