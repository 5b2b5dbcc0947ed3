package server

import (
	"sync"
	"time"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/session"
)

// expiry tracks when sessions expire. Every server keeps track; the leader's expiry decides.
type expiry struct {
	mu      sync.Mutex // guards these
	tracker *session.Tracker
	// leadingSince is Status.Since of the leadership for which the tracker was reset; zero: this
	// server does not lead.
	leadingSince time.Time
	// jumped is when MoveClock last moved the clock. A time that was read from the clock before the
	// jump is too old for a client that connects now.
	jumped time.Time
}

func (e *expiry) init(tick time.Duration) { e.tracker = session.New(tick) }

// touch records that a session was heard from at that time.
func (e *expiry) touch(id proto.SessionID, at time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tracker.Touch(id, at)
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
	e.tracker.ResetAll(now)
}

// takeLead gives every session a full timeout if this server has become the leader, because the
// previous leader's record of sessions is lost. takeLead reports whether it did. e.mu is held.
func (e *expiry) takeLead(st consensus.Status, now time.Time) bool {
	switch {
	case !st.Leading:
		e.leadingSince = time.Time{}
	case !st.Since.Equal(e.leadingSince):
		e.leadingSince = st.Since
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
	s.expiry.tracker = session.New(s.cfg.Tick)
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
	clear(s.conns.disconnectedAt) // forget has touched these
}

// expired returns the sessions whose timeout is over by the tracker, and the present epoch. expired
// holds the tree's lock so that no session re-attaches meanwhile: a session that re-attached after
// the tracker had given up on it would be closed under its new epoch.
func (s *Server) expired(over func(*session.Tracker) []proto.SessionID) (infos []datatree.SessionInfo, epoch uint32) {
	s.treeMu.RLock()
	defer s.treeMu.RUnlock()
	s.expiry.mu.Lock()
	defer s.expiry.mu.Unlock()
	for _, id := range over(s.expiry.tracker) {
		if info, ok := s.tree.Session(id); ok {
			infos = append(infos, info)
		}
	}
	return infos, s.tree.LastZxid().Epoch()
}

// expiryRequest returns the request that ends a session. The request names the connection epoch
// that was seen, so a session that re-attaches in the meantime lives, and the epoch of this leader,
// so the session also lives if another leader takes over.
func expiryRequest(info datatree.SessionInfo, epoch uint32) datatree.Request {
	return datatree.Request{
		Session: info.ID, ConnEpoch: info.ConnEpoch, Op: proto.OpExpireSession, Body: datatree.ExpireSessionBody{Epoch: epoch}.Append(nil),
	}
}
