package liveness

import (
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/session"
)

// Expiry decides when sessions expire; the package comment has the rules. Expiry is safe for
// concurrent use. Its lock is taken after those of connections, and held while it calls arguments.
type Expiry struct {
	own  uint8 // this server's member id
	tick time.Duration

	mu       sync.Mutex // guards the rest
	tracker  *session.Tracker
	reported map[uint8]Report // the last report of each other member
	// resetAt is when every session last got a full timeout.
	resetAt time.Time
	// leadingSince is when the leadership began that the tracker was reset for; zero: none.
	leadingSince time.Time
	// lastJump is when the clock last jumped. A time that was read from the clock before the jump
	// is too old for a client that connects now.
	lastJump  time.Time
	givenBack time.Duration // since the last jump
	jumps     []jump        // the last ones
}

type jump struct {
	until time.Time
	by    time.Duration
}

// maxJumps is how many jumps are remembered, for the reports that were under way.
const maxJumps = 100

// Report is a report of another member, as the leader knows it.
type Report struct {
	Arrived        time.Time
	MadeAfter      time.Time
	FirstOfProcess bool // the member's process does not know yet that a report has arrived
	// processStarted is a lower bound of when the member's process began. Until then its previous
	// process may have heard clients. Zero: there was none under this leader.
	processStarted time.Time
}

// NewExpiry returns an Expiry without sessions for the server with that member id.
func NewExpiry(own uint8, tick time.Duration) *Expiry {
	return &Expiry{own: own, tick: tick, tracker: session.New(tick), reported: make(map[uint8]Report)}
}

// Attached records that a client connected with a new or an existing session.
func (e *Expiry) Attached(id proto.SessionID, timeout time.Duration, isNew bool, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now = later(now, e.lastJump)
	if isNew {
		e.tracker.Add(id, timeout, now)
	} else {
		e.tracker.SetTimeout(id, timeout, now)
	}
}

// Touch records that a session was heard from at that time. Older news changes nothing.
func (e *Expiry) Touch(id proto.SessionID, at time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tracker.Touch(id, at)
}

// Remove forgets a session, which has ended.
func (e *Expiry) Remove(id proto.SessionID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tracker.Remove(id)
}

// Adopt replaces the sessions by those of a state that was restored, each with a full timeout.
func (e *Expiry) Adopt(sessions iter.Seq2[proto.SessionID, time.Duration], now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tracker, e.resetAt = session.New(e.tick), now
	for id, timeout := range sessions {
		e.tracker.Add(id, timeout, now)
	}
}

// Reported records a report of another member, whose touches are recorded already. sessions yields
// the member's sessions with their timeouts, if the report is the first of a process.
func (e *Expiry) Reported(from uint8, r Report, sessions iter.Seq2[proto.SessionID, time.Duration]) {
	e.mu.Lock()
	defer e.mu.Unlock()
	last, known := e.reported[from]
	r.processStarted = last.processStarted
	if known && r.FirstOfProcess && !last.FirstOfProcess {
		r.processStarted = earlier(last.Arrived.Add(e.tick), r.Arrived)
		for id, timeout := range sessions {
			if !e.tracker.Silent(id, last.processStarted.Add(timeout)) { // a client of that process
				e.tracker.Touch(id, r.processStarted)
			}
		}
	}
	e.reported[from] = r
}

// ResetAll gives every session a full timeout. If the clock has jumped, only the time since then is
// given back, as by GiveBack.
func (e *Expiry) ResetAll(now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.resetAt = now
	if e.lastJump.IsZero() {
		e.tracker.ResetAll(now)
	} else {
		e.giveBack(now.Sub(e.lastJump), now)
	}
}

// GiveBack lets the time lost, which has just ended, count for no session and for no report. Only
// what was lost since the last jump counts: whoever made the clock jump wanted that time to pass.
func (e *Expiry) GiveBack(lost time.Duration, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	lost = e.giveBack(lost, now)
	e.resetAt = later(e.resetAt, earlier(e.resetAt.Add(lost), now))
	for id, r := range e.reported {
		r.Arrived = later(r.Arrived, earlier(r.Arrived.Add(lost), now))
		e.reported[id] = r
	}
}

// giveBack gives sessions as much of the time lost as has passed since the last jump and was not
// given back yet, and returns that. e.mu is held.
func (e *Expiry) giveBack(lost time.Duration, now time.Time) time.Duration {
	lost = max(0, min(lost, now.Sub(e.lastJump)-e.givenBack))
	e.givenBack += lost
	e.tracker.GiveBack(lost, now)
	return lost
}

// Lead gives every session a full timeout if this server has become the leader, and reports whether
// it did. since is when the present leadership began.
func (e *Expiry) Lead(leading bool, since, now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case !leading:
		e.leadingSince = time.Time{}
	case !since.Equal(e.leadingSince):
		e.leadingSince, e.resetAt = since, now
		e.tracker.ResetAll(now)
		return true
	}
	return false
}

// Jump calls move, which makes the clock jump, while no session can expire. move returns the times
// before and after the jump, and the sessions that count as heard from at the time after it.
func (e *Expiry) Jump(move func() (from, now time.Time, heard []int64)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	from, now, heard := move()
	e.lastJump, e.givenBack = now, 0
	e.jumps = append(e.jumps[max(0, len(e.jumps)+1-maxJumps):], jump{now, now.Sub(from)})
	for _, id := range heard {
		e.tracker.Touch(proto.SessionID(id), now)
	}
}

// Jumped returns by how much the clock has jumped since a time, after which a report was made. If
// the report is older than the jumps, its touches are older by so much than they say. If it is
// newer, Attached and Jump have recorded the sessions that were heard from since.
func (e *Expiry) Jumped(since time.Time) (by time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, j := range e.jumps {
		if j.until.After(since) {
			by += j.by
		}
	}
	return by
}

// Due returns the sessions whose timeout is over, also those that are marked as closing. The caller
// owns the result.
func (e *Expiry) Due(now time.Time) []proto.SessionID {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.tracker.Due(now)
}

// Expiries returns when the sessions expire, the next first. The caller owns the result.
func (e *Expiry) Expiries() []session.Bucket {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.tracker.Buckets()
}

// Expired returns the sessions to close now, sorted, and marks them as closing. find returns a
// session's server and timeout, or false if its end is being applied. The caller owns the result.
func (e *Expiry) Expired(now time.Time, find func(proto.SessionID) (uint8, time.Duration, bool)) []proto.SessionID {
	e.mu.Lock()
	defer e.mu.Unlock()
	var ids []proto.SessionID
	for _, id := range e.tracker.Expired(now) {
		server, timeout, ok := find(id)
		switch {
		case !ok:
		case e.silenceKnown(id, server, timeout, now):
			ids = append(ids, id)
		default:
			e.tracker.Retry(id)
		}
	}
	return ids
}

// silenceKnown reports whether it is certain that a session was silent for its timeout, which is
// over as far as this server knows: the statement of the session's server, or that it had none.
func (e *Expiry) silenceKnown(id proto.SessionID, server uint8, timeout time.Duration, now time.Time) bool {
	report := e.reported[server]
	if server == e.own || e.tracker.Silent(id, report.MadeAfter) {
		return true
	}
	return now.Sub(later(report.Arrived, e.resetAt)) > timeout+e.tick
}

func earlier(a, b time.Time) time.Time { return slices.MinFunc([]time.Time{a, b}, time.Time.Compare) }

func later(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }
