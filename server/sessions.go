package server

import (
	"context"
	"time"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/session"
)

// adoptSessions makes the tracker know the sessions of a state that was restored, with a full timeout: while nobody served,
// nobody could be heard.
func (s *Server) adoptSessions() {
	now := s.cfg.Now()
	s.tree.RLock()
	defer s.tree.RUnlock()
	s.trackMu.Lock()
	defer s.trackMu.Unlock()
	s.tracker = session.New(s.cfg.Tick)
	for info := range s.state.Sessions() {
		s.tracker.Add(info.ID, time.Duration(info.TimeoutMs)*time.Millisecond, now)
	}
}

// runSessions follows who leads, reports who was heard from, and, on the leader, expires who was not, twice a tick. Of
// who leads it hears at once.
func (s *Server) runSessions(ctx context.Context) {
	ticker := time.NewTicker(max(s.cfg.Tick/2, time.Millisecond))
	defer ticker.Stop()
	stalled := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.node.Changed():
			s.watchRole(s.node.Status())
			continue
		case <-ticker.C:
		}
		now, st := s.cfg.Now(), s.node.Status()
		s.hot.tick(s.hotSecond())
		s.watchRole(st)
		if !st.Leading {
			if st.Leader != 0 {
				s.report(st.Leader, now)
			}
			continue
		}
		s.tellPeers(st)
		switch {
		case s.stalled():
			stalled = true
			continue
		case stalled: // as after an election: nobody could be served, so nobody is late
			stalled = false
			s.trackMu.Lock()
			s.tracker.ResetAll(now)
			s.trackMu.Unlock()
		}
		s.touchSessions()
		s.expireSessions(now)
	}
}

// stalled reports whether writes are waiting and none was applied for more than a tick: the disk hangs. Clients that wait
// behind such a write are not read, and those that give up can't re-attach; expiring them would make a slow disk a loss of
// sessions.
func (s *Server) stalled() bool {
	return s.outstanding.outstanding() > 0 && time.Since(s.begun)-time.Duration(s.lastApply.Load()) > s.cfg.Tick
}

func (s *Server) touchSessions() {
	s.connMu.Lock()
	defer s.connMu.Unlock()
	s.trackMu.Lock()
	defer s.trackMu.Unlock()
	for id, c := range s.bySession {
		s.tracker.Touch(id, c.heard())
	}
	clear(s.left) // forget has touched these
}

// expireSessions proposes to close what was not heard from. The request names the connection epoch that was seen, so a
// session that re-attaches in the meantime lives, and the epoch of this leader, so it lives too if another one takes over.
func (s *Server) expireSessions(now time.Time) {
	infos, epoch := s.expired(func() []proto.SessionID { return s.tracker.Expired(now) })
	for _, info := range infos {
		s.cfg.Logger.Info("session expires", "session", info.ID.String(), "timeout_ms", info.TimeoutMs)
		s.proposeOwn(expiry(info, epoch))
	}
}

// expiry is the request that ends a session.
func expiry(info datatree.SessionInfo, epoch uint32) datatree.Request {
	return datatree.Request{
		Session: info.ID, ConnEpoch: info.ConnEpoch, Op: proto.OpExpireSession, Body: datatree.ExpireSessionBody{Epoch: epoch}.Append(nil),
	}
}

// expired returns the sessions that the tracker says are over. The tree's lock holds still who is attached where: a session that
// re-attached after the tracker gave it up would otherwise be closed under its new epoch.
func (s *Server) expired(over func() []proto.SessionID) (infos []datatree.SessionInfo, epoch uint32) {
	s.tree.RLock()
	defer s.tree.RUnlock()
	s.trackMu.Lock()
	defer s.trackMu.Unlock()
	for _, id := range over() {
		if info, ok := s.state.Session(id); ok {
			infos = append(infos, info)
		}
	}
	return infos, s.state.LastZxid().Epoch()
}

// proposeOwn proposes a request of the server itself.
func (s *Server) proposeOwn(r datatree.Request) { s.propose(r, nil) }

// propose does so too, and hands the result to applied, under the tree's lock, unless the server stops first.
func (s *Server) propose(r datatree.Request, applied func(*datatree.Result)) {
	r.Server = s.cfg.MemberID
	w := &pending{kind: kindWrite, req: r, received: s.cfg.Now(), applied: applied}
	s.node.Propose(r.Append(nil), w)
}

// runCollector collects empty containers and expired TTL znodes.
func (s *Server) runCollector(ctx context.Context) {
	ticker := time.NewTicker(s.cfg.ContainerInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if !s.serving.Load() { // the log is closed: nobody would take the requests
				return
			}
			if s.node.Status().Leading {
				perRound := max(1, int(float64(s.live.Load().ContainerMaxPerMinute)*s.cfg.ContainerInterval.Minutes()))
				for _, r := range s.collectable(s.cfg.Now(), perRound) {
					s.proposeOwn(r)
				}
			}
		}
	}
}

// collectable returns requests that delete what is to be collected.
func (s *Server) collectable(now time.Time, limit int) (requests []datatree.Request) {
	s.tree.RLock()
	paths := s.state.Collectable(now.UnixMilli(), max(0, s.live.Load().ContainerNeverUsed.Milliseconds()), limit)
	s.tree.RUnlock()
	for _, path := range paths {
		requests = append(requests, datatree.Request{Op: proto.OpDeleteContainer, Body: (&proto.PathRequest{Path: &path}).Append(nil)})
	}
	return requests
}
