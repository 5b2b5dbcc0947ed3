package session

import (
	"slices"
	"time"

	"github.com/gozkd/gozkd/proto"
)

// Tracker tells when sessions are over. Not safe for concurrent use: one goroutine owns it.
//
// Every now is an instant of one clock. If it carries a monotonic reading, as from time.Now, steps of the wall clock have
// no effect. It need not rise from call to call: reports arrive late.
type Tracker struct {
	tick     time.Duration
	origin   time.Time // instants are kept as durations since then; a multiple of tick. Zero until the first now
	sessions map[proto.SessionID]*entry
	buckets  map[int64]*entry // what expires at the instant key*tick, in a list; no bucket is empty
}

// entry is one session. It is in the list of its bucket unless it is closing.
type entry struct {
	id         proto.SessionID
	timeout    time.Duration
	heard      time.Duration // when it was last heard from
	bucket     int64
	prev, next *entry
	closing    bool
}

// New returns a tracker without sessions and with buckets of one tick. It panics if tick is not positive.
func New(tick time.Duration) *Tracker {
	if tick <= 0 {
		panic("session: tick must be positive, not " + tick.String())
	}
	return &Tracker{tick: tick, sessions: make(map[proto.SessionID]*entry), buckets: make(map[int64]*entry)}
}

// Add makes id known, heard from at now. For one that is known already it does what SetTimeout does.
func (t *Tracker) Add(id proto.SessionID, timeout time.Duration, now time.Time) {
	e := t.sessions[id]
	if e == nil {
		e = &entry{id: id, heard: t.since(now), closing: true} // not in a bucket yet
		t.sessions[id] = e
	}
	t.update(e, timeout, t.since(now))
}

// Touch notes that id was heard from at now. False if id is unknown. A session that is closing is put back, unless it was
// heard from later than now already (E3). O(1); a touch within the same tick does not move the session.
func (t *Tracker) Touch(id proto.SessionID, now time.Time) bool {
	e := t.sessions[id]
	if e == nil {
		return false
	}
	if at := t.since(now); at > e.heard {
		t.update(e, e.timeout, at)
	}
	return true
}

// SetTimeout gives id another timeout and notes that it was heard from at now: a client took it up again. A shorter
// timeout shortens its life. A session that is closing is put back. False if id is unknown.
func (t *Tracker) SetTimeout(id proto.SessionID, timeout time.Duration, now time.Time) bool {
	e := t.sessions[id]
	if e != nil {
		t.update(e, timeout, t.since(now))
	}
	return e != nil
}

// Remove forgets id: it is closed.
func (t *Tracker) Remove(id proto.SessionID) {
	if e := t.sessions[id]; e != nil {
		t.unlink(e)
		delete(t.sessions, id)
	}
}

// Expired returns the sessions whose time is over at now, sorted. They are closing from then on (E4): the caller proposes
// to close them, and calls Remove when that is applied, SetTimeout when it turns out that a client came back in
// the meantime, Retry when the proposal came to nothing. The caller owns the result. The cost is that of the result and
// of the number of buckets, which is at most the longest timeout in ticks and a few.
func (t *Tracker) Expired(now time.Time) []proto.SessionID {
	last := floorDiv(t.since(now), t.tick)
	var ids []proto.SessionID
	for bucket, e := range t.buckets {
		if bucket > last {
			continue
		}
		for ; e != nil; e = t.buckets[bucket] {
			t.unlink(e)
			e.closing = true
			ids = append(ids, e.id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Due returns the sessions whose time is over at now to the instant, where Expired waits for the end of a bucket, and those that are
// closing, sorted. It changes nothing, and goes through all sessions. The caller owns the result.
func (t *Tracker) Due(now time.Time) []proto.SessionID {
	at := t.since(now)
	var ids []proto.SessionID
	for id, e := range t.sessions {
		if e.closing || e.heard+e.timeout <= at {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Retry puts a session that is closing back where it was, so that the next Expired returns it again. For others it does
// nothing.
func (t *Tracker) Retry(id proto.SessionID) {
	if e := t.sessions[id]; e != nil && e.closing {
		t.link(e)
	}
}

// ResetAll gives every session its full timeout from now on, closing ones too: a new leader cannot know who was heard
// from before.
func (t *Tracker) ResetAll(now time.Time) {
	at := t.since(now)
	for _, e := range t.sessions {
		t.update(e, e.timeout, at)
	}
}

// Bucket lists the sessions that expire at one instant.
type Bucket struct {
	At  time.Time
	IDs []proto.SessionID // sorted
}

// Buckets returns all buckets by time, for the word dump. Sessions that are closing are in none. The caller owns the
// result.
func (t *Tracker) Buckets() []Bucket {
	buckets := make([]Bucket, 0, len(t.buckets))
	for bucket, e := range t.buckets {
		b := Bucket{At: t.origin.Add(time.Duration(bucket) * t.tick)}
		for ; e != nil; e = e.next {
			b.IDs = append(b.IDs, e.id)
		}
		slices.Sort(b.IDs)
		buckets = append(buckets, b)
	}
	slices.SortFunc(buckets, func(a, b Bucket) int { return a.At.Compare(b.At) })
	return buckets
}

// update notes timeout and that e was heard from at the instant at, and puts e where that belongs. E3: what was heard
// later stays.
func (t *Tracker) update(e *entry, timeout, at time.Duration) {
	e.timeout, e.heard = timeout, max(e.heard, at)
	bucket := floorDiv(e.heard+timeout, t.tick) + 1
	if !e.closing && bucket == e.bucket {
		return
	}
	t.unlink(e)
	e.bucket = bucket
	t.link(e)
}

func (t *Tracker) link(e *entry) {
	e.closing = false
	if e.next = t.buckets[e.bucket]; e.next != nil {
		e.next.prev = e
	}
	t.buckets[e.bucket] = e
}

// unlink takes e out of its bucket, if it is in one.
func (t *Tracker) unlink(e *entry) {
	if e.closing {
		return
	}
	switch {
	case e.prev != nil:
		e.prev.next = e.next
	case e.next != nil:
		t.buckets[e.bucket] = e.next
	default:
		delete(t.buckets, e.bucket)
	}
	if e.next != nil {
		e.next.prev = e.prev
	}
	e.prev, e.next = nil, nil
}

// since returns now as a duration since the origin, which the first call sets.
func (t *Tracker) since(now time.Time) time.Duration {
	if t.origin.IsZero() {
		// Taking a duration off keeps the monotonic reading, which Truncate would drop.
		t.origin = now.Add(-time.Duration(now.UnixNano() % int64(t.tick)))
	}
	return now.Sub(t.origin)
}

// floorDiv divides rounding down, below zero too: an instant can be before the origin.
func floorDiv(a, b time.Duration) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return int64(q)
}
