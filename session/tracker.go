package session

import (
	"slices"
	"sort"
	"time"

	"github.com/gozkd/gozkd/proto"
)

// Tracker finds expired sessions. A Tracker is not safe for concurrent use: callers on several
// goroutines must share a lock.
//
// All times passed to a tracker must come from the same clock. If they carry a monotonic reading,
// as those of time.Now do, steps of the wall clock have no effect. They need not ascend from call
// to call, since reports may arrive late.
type Tracker struct {
	tick     time.Duration
	origin   time.Time // base of all stored times; a multiple of tick; zero until the first call with a time
	sessions map[proto.SessionID]*entry
	buckets  map[int64][]*entry // the sessions that expire at origin+key*tick; no bucket is empty
}

// entry is a session. Unless the session is closing, the entry is in its bucket.
type entry struct {
	id        proto.SessionID
	timeout   time.Duration
	lastHeard time.Duration // since origin
	bucket    int64
	at        int // in the bucket
	closing   bool
}

// New returns an empty tracker with buckets of one tick, and panics if tick is not positive.
func New(tick time.Duration) *Tracker {
	if tick <= 0 {
		panic("session: tick must be positive, not " + tick.String())
	}
	return &Tracker{tick: tick, sessions: make(map[proto.SessionID]*entry), buckets: make(map[int64][]*entry)}
}

// Add adds session id, last heard from at now. If id is known, Add is the same as SetTimeout.
func (t *Tracker) Add(id proto.SessionID, timeout time.Duration, now time.Time) {
	e := t.sessions[id]
	if e == nil {
		e = &entry{id: id, lastHeard: t.since(now), closing: true} // not in a bucket yet
		t.sessions[id] = e
	}
	t.update(e, timeout, t.since(now))
}

// Touch records that id was heard from at now, and reports whether id is known. A closing session
// is put back, unless a later report is known (E3). Touch takes constant time; a touch within the
// same tick does not move the session.
func (t *Tracker) Touch(id proto.SessionID, now time.Time) bool {
	e := t.sessions[id]
	if e == nil {
		return false
	}
	if at := t.since(now); at > e.lastHeard {
		t.update(e, e.timeout, at)
	}
	return true
}

// SetTimeout replaces the timeout of id, whose client has reconnected, records that id was heard
// from at now, and reports whether id is known. A shorter timeout takes effect at once. A closing
// session is put back.
func (t *Tracker) SetTimeout(id proto.SessionID, timeout time.Duration, now time.Time) bool {
	e := t.sessions[id]
	if e != nil {
		t.update(e, timeout, t.since(now))
	}
	return e != nil
}

// Remove removes session id, which is closed.
func (t *Tracker) Remove(id proto.SessionID) {
	if e := t.sessions[id]; e != nil {
		t.unlink(e)
		delete(t.sessions, id)
	}
}

// Expired returns the sessions that have expired at now, sorted, and marks them as closing (E4).
// The caller owns the result, and proposes to close each session. Then the caller must call
//
//   - Remove when the proposal was applied,
//   - SetTimeout if the client reconnected in the meantime,
//   - Touch if the proposal was refused for another reason, so that the session lives on,
//   - Retry if the caller did not propose to close the session: the next Expired returns it again.
//
// The cost is proportional to the size of the result plus the number of buckets, which is at most
// the longest timeout in ticks plus a few.
func (t *Tracker) Expired(now time.Time) []proto.SessionID {
	last := floorDiv(t.since(now), t.tick)
	var ids []proto.SessionID
	for bucket, entries := range t.buckets {
		if bucket > last {
			continue
		}
		for _, e := range entries {
			e.closing = true
			ids = append(ids, e.id)
		}
		delete(t.buckets, bucket)
	}
	slices.Sort(ids)
	return ids
}

// Silent reports whether id is known and its timeout had passed then, not rounded up to a bucket.
func (t *Tracker) Silent(id proto.SessionID, at time.Time) bool {
	e := t.sessions[id]
	return e != nil && e.lastHeard+e.timeout <= t.since(at)
}

// Due returns the sessions that are closing or whose timeout has passed at now, sorted. Unlike
// Expired, Due does not wait for the end of a bucket, changes nothing, and visits all sessions. The
// caller owns the result.
func (t *Tracker) Due(now time.Time) []proto.SessionID {
	at := t.since(now)
	var ids []proto.SessionID
	for id, e := range t.sessions {
		if e.closing || e.lastHeard+e.timeout <= at {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Retry puts a closing session back into its bucket, so that the next Expired returns it again.
// Retry does nothing for other sessions.
func (t *Tracker) Retry(id proto.SessionID) {
	if e := t.sessions[id]; e != nil && e.closing {
		t.link(e)
	}
}

// ResetAll gives every session, closing or not, its full timeout from now on: a new leader does not
// know when each client was last heard from.
func (t *Tracker) ResetAll(now time.Time) {
	at := t.since(now)
	for _, e := range t.sessions {
		t.update(e, e.timeout, at)
	}
}

// GiveBack moves the time at which each session was last heard forward by lost, but not beyond now,
// because nobody could be heard in that time, which has just ended. Closing sessions stay closing.
func (t *Tracker) GiveBack(lost time.Duration, now time.Time) {
	at := t.since(now)
	for _, e := range t.sessions {
		if !e.closing {
			t.update(e, e.timeout, min(e.lastHeard+lost, at))
		}
	}
}

// Bucket lists the sessions that expire at the same instant.
type Bucket struct {
	At  time.Time
	IDs []proto.SessionID // sorted
}

// Buckets returns all buckets in order of time, for the four-letter word dump. Closing sessions are
// in no bucket. The caller owns the result.
func (t *Tracker) Buckets() []Bucket {
	buckets := make([]Bucket, 0, len(t.buckets))
	for bucket, entries := range t.buckets {
		b := Bucket{At: t.origin.Add(time.Duration(bucket) * t.tick)}
		for _, e := range entries {
			b.IDs = append(b.IDs, e.id)
		}
		slices.Sort(b.IDs)
		buckets = append(buckets, b)
	}
	sort.Slice(buckets, func(i, j int) bool { return buckets[i].At.Before(buckets[j].At) })
	return buckets
}

// update records a timeout and a report of the time at, and moves e to the bucket that follows from
// them. A later report takes precedence (E3).
func (t *Tracker) update(e *entry, timeout, at time.Duration) {
	e.timeout, e.lastHeard = timeout, max(e.lastHeard, at)
	bucket := floorDiv(e.lastHeard+timeout, t.tick) + 1
	if !e.closing && bucket == e.bucket {
		return
	}
	t.unlink(e)
	e.bucket = bucket
	t.link(e)
}

func (t *Tracker) link(e *entry) {
	entries := t.buckets[e.bucket]
	e.at, e.closing = len(entries), false
	t.buckets[e.bucket] = append(entries, e)
}

// unlink removes e from its bucket, where the last entry takes its place. A closing entry is in
// none.
func (t *Tracker) unlink(e *entry) {
	if e.closing {
		return
	}
	entries := t.buckets[e.bucket]
	last := len(entries) - 1
	entries[e.at], entries[last].at, entries[last] = entries[last], e.at, nil
	if t.buckets[e.bucket] = entries[:last]; last == 0 {
		delete(t.buckets, e.bucket)
	}
}

// since returns now as a duration since the origin, which the first call sets.
func (t *Tracker) since(now time.Time) time.Duration {
	if t.origin.IsZero() {
		// Subtracting a duration keeps the monotonic reading, which Truncate would drop.
		t.origin = now.Add(-time.Duration(now.UnixNano() % int64(t.tick)))
	}
	return now.Sub(t.origin)
}

// floorDiv divides and rounds down, also below zero: a time may be before the origin.
func floorDiv(a, b time.Duration) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return int64(q)
}
