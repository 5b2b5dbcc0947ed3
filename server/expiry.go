package server

import (
	"sync"
	"time"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/session"
)

// expiry tracks when sessions expire. Every server keeps track; the leader's expiry decides. The
// rules are in docs/internals/sessions-and-watches.md.
type expiry struct {
	mu       sync.Mutex // guards these
	tracker  *session.Tracker
	reported map[uint8]memberReport // the last report of each other member
	// deafUntil is when this server last could not hear, or did not decide.
	deafUntil time.Time
	// leadingSince is Status.Since of the leadership for which the tracker was reset; zero: this
	// server does not lead.
	leadingSince time.Time
	// jumped is when MoveClock last moved the clock. A time that was read from the clock before the
	// jump is too old for a client that connects now.
	jumped time.Time
}

// memberReport is what the leader knows of a report of another member.
type memberReport struct{ arrived, madeAfter time.Time }

func (e *expiry) init(tick time.Duration) {
	e.tracker, e.reported = session.New(tick), make(map[uint8]memberReport)
}

// touch records that a session was heard from at that time.
func (e *expiry) touch(id proto.SessionID, at time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tracker.Touch(id, at)
}

// touchAll records that sessions were heard from at that time.
func (e *expiry) touchAll(ids []proto.SessionID, at time.Time) {
	if len(ids) == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, id := range ids {
		e.tracker.Touch(id, at)
	}
}

func (e *expiry) remove(id proto.SessionID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tracker.Remove(id)
}

// attached records that a client connected with a new or an existing session.
func (e *expiry) attached(info datatree.SessionInfo, isNew bool, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if now.Before(e.jumped) {
		now = e.jumped
	}
	timeout := time.Duration(info.TimeoutMs) * time.Millisecond
	if isNew {
		e.tracker.Add(info.ID, timeout, now)
	} else {
		e.tracker.SetTimeout(info.ID, timeout, now)
	}
}

// resetAll gives every session a full timeout.
func (e *expiry) resetAll(now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.deafUntil = now
	e.tracker.ResetAll(now)
}

// giveBack lets the time lost, which has just ended, count for no session. again: the same happened
// just before, and the wait for the members' reports is not extended once more.
func (e *expiry) giveBack(lost time.Duration, now time.Time, again bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !again {
		e.deafUntil = now
	}
	e.tracker.GiveBack(lost, now)
}

// takeLead gives every session a full timeout if this server has become the leader, because the
// previous leader's record of sessions is lost. takeLead reports whether it did. e.mu is held.
func (e *expiry) takeLead(st consensus.Status, now time.Time) bool {
	switch {
	case !st.Leading:
		e.leadingSince = time.Time{}
	case !st.Since.Equal(e.leadingSince):
		e.leadingSince, e.deafUntil = st.Since, now
		e.tracker.ResetAll(now)
		return true
	}
	return false
}

// adoptSessions makes the tracker know the sessions of a state that was restored, each with a full
// timeout: while no server served, no client could be heard.
func (s *Server) adoptSessions() {
	now := s.cfg.Now()
	s.treeMu.RLock()
	defer s.treeMu.RUnlock()
	s.expiry.mu.Lock()
	defer s.expiry.mu.Unlock()
	s.expiry.tracker, s.expiry.deafUntil = session.New(s.cfg.Tick), now
	for info := range s.tree.Sessions() {
		s.expiry.tracker.Add(info.ID, time.Duration(info.TimeoutMs)*time.Millisecond, now)
	}
}

// takeLead resets expiry and digests if this server has become the leader. s.expiry.mu is held.
func (s *Server) takeLead() {
	if s.expiry.takeLead(s.node.Status(), s.cfg.Now()) {
		s.digests.forget()
	}
}

// touchSessions records when each connected session was last heard from.
func (s *Server) touchSessions() {
	s.conns.mu.Lock()
	defer s.conns.mu.Unlock()
	s.expiry.mu.Lock()
	defer s.expiry.mu.Unlock()
	for id, c := range s.conns.bySession {
		s.expiry.tracker.Touch(id, c.heard())
	}
	clear(s.conns.unattachedAt) // forget and heardOwner have touched these
}

// due returns the sessions that are closing or whose timeout is over, and the present epoch. due
// holds the tree's lock so that no session re-attaches meanwhile: a session that re-attached after
// the tracker had given up on it would be closed under its new epoch.
func (s *Server) due(now time.Time) (infos []datatree.SessionInfo, epoch uint32) {
	s.treeMu.RLock()
	defer s.treeMu.RUnlock()
	s.expiry.mu.Lock()
	defer s.expiry.mu.Unlock()
	for _, id := range s.expiry.tracker.Due(now) {
		if info, ok := s.tree.Session(id); ok {
			infos = append(infos, info)
		}
	}
	return infos, s.tree.LastZxid().Epoch()
}

// expired returns the sessions that are to be closed now, and the present epoch. It holds the same
// locks as due.
func (s *Server) expired(now time.Time) (infos []datatree.SessionInfo, epoch uint32) {
	s.treeMu.RLock()
	defer s.treeMu.RUnlock()
	s.expiry.mu.Lock()
	defer s.expiry.mu.Unlock()
	for _, id := range s.expiry.tracker.Expired(now) {
		info, ok := s.tree.Session(id)
		switch {
		case !ok: // its end is being applied
		case s.silenceKnown(info, now):
			infos = append(infos, info)
		default:
			s.expiry.tracker.Retry(id)
		}
	}
	return infos, s.tree.LastZxid().Epoch()
}

// silenceKnown reports whether it is certain that a session was silent for its timeout, which is
// over as far as this server knows. For a session of another member, that member must have made a
// report after the end of the timeout.
//
// A member that does not report is not waited for beyond the session's timeout, or syncLimit ticks,
// after which the member closes its connections. The tick more is for a member that was paused: it
// must read its connections before it reports. s.expiry.mu is held.
func (s *Server) silenceKnown(info datatree.SessionInfo, now time.Time) bool {
	e := &s.expiry
	report := e.reported[info.Server]
	if info.Server == s.cfg.MemberID || e.tracker.Silent(info.ID, report.madeAfter) {
		return true
	}
	last := report.arrived
	if last.Before(e.deafUntil) {
		last = e.deafUntil
	}
	timeout := time.Duration(info.TimeoutMs) * time.Millisecond
	return now.Sub(last) > min(timeout, time.Duration(s.cfg.SyncLimit)*s.cfg.Tick)+s.cfg.Tick
}

// expiryRequest returns the request that ends a session. The request names the connection epoch
// that was seen, so a session that re-attaches in the meantime lives, and the epoch of this leader,
// so the session also lives if another leader takes over.
func expiryRequest(info datatree.SessionInfo, epoch uint32) datatree.Request {
	return datatree.Request{
		Session: info.ID, ConnEpoch: info.ConnEpoch, Op: proto.OpExpireSession, Body: datatree.ExpireSessionBody{Epoch: epoch}.Append(nil),
	}
}
