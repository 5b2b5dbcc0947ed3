package server

import (
	"iter"
	"sync"
	"time"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/internal/liveness"
)

// expiry decides when sessions expire. Every server keeps track; the leader's expiry decides, twice
// a tick (runSessions).
type expiry struct {
	mu sync.Mutex // guards these
	*liveness.Expiry
}

// touch records that a session was heard from at that time.
func (e *expiry) touch(id proto.SessionID, at time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.Touch(id, at)
}

func timeoutOf(info datatree.SessionInfo) time.Duration {
	return time.Duration(info.TimeoutMs) * time.Millisecond
}

// timeouts yields the sessions of a member or, for member 0, all sessions. The tree's lock is held.
func (s *Server) timeouts(member uint8) iter.Seq2[proto.SessionID, time.Duration] {
	return func(yield func(proto.SessionID, time.Duration) bool) {
		for info := range s.state.tree.Sessions() {
			if (member == 0 || info.Server == member) && !yield(info.ID, timeoutOf(info)) {
				return
			}
		}
	}
}

// reportArrived records a report of another member.
func (s *Server) reportArrived(from uint8, r liveness.Report) {
	if r.FirstOfProcess {
		s.state.RLock() // for the sessions
		defer s.state.RUnlock()
	}
	s.expiry.mu.Lock()
	defer s.expiry.mu.Unlock()
	s.expiry.Reported(from, r, s.timeouts(from))
}

// adoptSessions makes expiry know the sessions of a state that was restored.
func (s *Server) adoptSessions() {
	s.state.RLock()
	defer s.state.RUnlock()
	s.expiry.mu.Lock()
	defer s.expiry.mu.Unlock()
	s.expiry.Adopt(s.timeouts(0), s.cfg.Now())
}

// takeLead resets expiry and digests if this server has become the leader. s.expiry.mu is held.
func (s *Server) takeLead() {
	if st := s.node.Status(); s.expiry.Lead(st.Leading, st.Since, s.cfg.Now()) {
		s.digests.Forget()
	}
}

// touchSessions records when each connected session was last heard from.
func (s *Server) touchSessions() {
	s.conns.mu.Lock()
	defer s.conns.mu.Unlock()
	s.expiry.mu.Lock()
	defer s.expiry.mu.Unlock()
	for id, c := range s.conns.bySession {
		s.expiry.Touch(id, c.Heard())
	}
	clear(s.conns.unattachedAt) // forget and heardOwner have touched these
}

// choose returns the sessions that ids chooses to be closed, and the present epoch. It holds the
// tree's lock so that no session re-attaches meanwhile: a session that re-attached after expiry had
// given up on it would be closed under its new epoch.
func (s *Server) choose(ids func() []proto.SessionID) (infos []datatree.SessionInfo, epoch uint32) {
	s.state.RLock()
	defer s.state.RUnlock()
	s.expiry.mu.Lock()
	defer s.expiry.mu.Unlock()
	for _, id := range ids() {
		if info, ok := s.state.tree.Session(id); ok {
			infos = append(infos, info)
		}
	}
	return infos, s.state.tree.LastZxid().Epoch()
}

// expiryRequest returns the request that ends a session. The request names the connection epoch
// that was seen, so a session that re-attaches in the meantime lives, and the epoch of this leader,
// so the session also lives if another leader takes over.
func expiryRequest(info datatree.SessionInfo, epoch uint32) datatree.Request {
	return datatree.Request{
		Session: info.ID, ConnEpoch: info.ConnEpoch, Op: proto.OpExpireSession, Body: datatree.ExpireSessionBody{Epoch: epoch}.Append(nil),
	}
}
