package liveness

import (
	"iter"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/session"
)

// Expiry decides when sessions expire; the package comment has the rules. Not safe for concurrent
// use.
type Expiry struct {
	*session.Tracker
	own      uint8 // this server's member id
	tick     time.Duration
	reported map[uint8]Report // the last report of each other member
	// resetAt is when every session last got a full timeout.
	resetAt time.Time
	// leadingSince is when the leadership began for which the tracker was reset; zero: this
	// server does not lead.
	leadingSince time.Time
	// lastJump is when the clock last jumped. A time that was read from the clock before the jump
	// is too old for a client that connects now.
	lastJump time.Time
}

// Report is what the leader knows of a report of another member.
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
	return &Expiry{own: own, tick: tick, Tracker: session.New(tick), reported: make(map[uint8]Report)}
}

// Attached records that a client connected with a new or an existing session.
func (e *Expiry) Attached(id proto.SessionID, timeout time.Duration, isNew bool, now time.Time) {
	now = later(now, e.lastJump)
	if isNew {
		e.Add(id, timeout, now)
	} else {
		e.SetTimeout(id, timeout, now)
	}
}

// Adopt replaces the sessions by those of a state that was restored, each with a full timeout:
// while no server served, no client could be heard.
func (e *Expiry) Adopt(sessions iter.Seq2[proto.SessionID, time.Duration], now time.Time) {
	e.Tracker, e.resetAt = session.New(e.tick), now
	for id, timeout := range sessions {
		e.Add(id, timeout, now)
	}
}

// Reported records a report of another member, whose touches are recorded already. If it is the
// first report of a process, the previous process may have heard clients that it did not report,
// until its next report was due: these clients count as heard at that time. sessions yields the
// member's sessions with their timeouts.
func (e *Expiry) Reported(from uint8, r Report, sessions iter.Seq2[proto.SessionID, time.Duration]) {
	last, known := e.reported[from]
	r.processStarted = last.processStarted
	if known && r.FirstOfProcess && !last.FirstOfProcess {
		r.processStarted = earlier(last.Arrived.Add(e.tick), r.Arrived)
		for id, timeout := range sessions {
			if !e.Silent(id, last.processStarted.Add(timeout)) { // a client of that process
				e.Touch(id, r.processStarted)
			}
		}
	}
	e.reported[from] = r
}

// ResetAll gives every session a full timeout.
func (e *Expiry) ResetAll(now time.Time) {
	e.resetAt = now
	e.Tracker.ResetAll(now)
}

// GiveBack lets the time lost, which has just ended, count for no session and for no report.
func (e *Expiry) GiveBack(lost time.Duration, now time.Time) {
	e.resetAt = earlier(e.resetAt.Add(lost), now)
	for id, r := range e.reported {
		r.Arrived = earlier(r.Arrived.Add(lost), now)
		e.reported[id] = r
	}
	e.Tracker.GiveBack(lost, now)
}

// Lead gives every session a full timeout if this server has become the leader, because the
// previous leader's record of sessions is lost. Lead reports whether it did. since is when the
// present leadership began.
func (e *Expiry) Lead(leading bool, since, now time.Time) bool {
	switch {
	case !leading:
		e.leadingSince = time.Time{}
	case !since.Equal(e.leadingSince):
		e.leadingSince = since
		e.ResetAll(now)
		return true
	}
	return false
}

// Jumped records that the clock has jumped to now.
func (e *Expiry) Jumped(now time.Time) { e.lastJump = now }

// Expired returns the sessions that must be closed now, sorted, and marks them as closing. find
// returns a session's server and timeout, or false if its end is being applied. The caller owns
// the result.
func (e *Expiry) Expired(now time.Time, find func(proto.SessionID) (uint8, time.Duration, bool)) []proto.SessionID {
	var ids []proto.SessionID
	for _, id := range e.Tracker.Expired(now) {
		server, timeout, ok := find(id)
		switch {
		case !ok:
		case e.silenceKnown(id, server, timeout, now):
			ids = append(ids, id)
		default:
			e.Retry(id)
		}
	}
	return ids
}

// silenceKnown reports whether it is certain that a session was silent for its timeout, which is
// over as far as this server knows. For a session of another member, that member must have made a
// report after the end of the timeout. A member that does not report is waited for until the
// timeout has passed after its next report was due: until then it may have heard the client.
func (e *Expiry) silenceKnown(id proto.SessionID, server uint8, timeout time.Duration, now time.Time) bool {
	report := e.reported[server]
	if server == e.own || e.Silent(id, report.MadeAfter) {
		return true
	}
	return now.Sub(later(report.Arrived, e.resetAt)) > timeout+e.tick
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
