package server

import (
	"context"
	"time"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/session"
)

// sessionLoop is the state of runSessions, owned by its goroutine.
type sessionLoop struct {
	reportedUntil time.Time // everything heard before this moment was reported to the leader
	lastLogged    transitions
}

// runSessions follows the leadership, twice a tick and whenever the leadership changes. Also twice
// a tick, it reports to the leader which sessions were heard from, or, on the leader, expires the
// sessions that were not heard from.
func (s *Server) runSessions(ctx context.Context) {
	ticker := time.NewTicker(max(s.cfg.Tick/2, time.Millisecond))
	defer ticker.Stop()
	stalled := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.node.Changed():
			s.watchLeader(s.node.Status())
			continue
		case <-ticker.C:
		}
		now, st := s.cfg.Now(), s.node.Status()
		s.meter.Hot.Tick()
		s.watchLeader(st)
		if !st.Leading {
			if st.Leader != 0 {
				s.report(st.Leader, now)
			}
			continue
		}
		s.logPeers(st)
		switch {
		case s.stalled():
			stalled = true
			continue
		case stalled: // as after an election: nobody could be served, so nobody is late
			stalled = false
			s.expiry.resetAll(now)
		}
		s.touchSessions()
		s.expireSessions(now)
	}
}

// stalled reports whether writes are waiting and none was applied for more than a tick: the disk
// hangs. A client that waits for such a write is not read, and a client that gives up cannot
// re-attach, so expiring them would turn a slow disk into a loss of sessions.
func (s *Server) stalled() bool {
	return s.writes.outstanding() > 0 && time.Since(s.startedMono)-time.Duration(s.applier.lastEnd.Load()) > s.cfg.Tick
}

// expireSessions proposes to close the sessions that were not heard from in time.
func (s *Server) expireSessions(now time.Time) {
	infos, epoch := s.expired(func(t *session.Tracker) []proto.SessionID { return t.Expired(now) })
	for _, info := range infos {
		s.cfg.Logger.Info("session expires", "session", info.ID.String(), "timeout_ms", info.TimeoutMs)
		s.propose(expiryRequest(info, epoch), nil)
	}
}

// propose proposes a request of the server itself. applied, if not nil, is called with the result,
// which does not outlive the call, under the tree's lock, unless the server stops first.
func (s *Server) propose(r datatree.Request, applied func(*datatree.Result)) {
	r.Server = s.cfg.MemberID
	s.node.Propose(r.Append(nil), &serverWrite{req: r, applied: applied})
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
			if !s.life.serving.Load() { // the log is closed and takes no requests
				return
			}
			if s.node.Status().Leading {
				perRound := max(1, int(float64(s.live.Load().ContainerMaxPerMinute)*s.cfg.ContainerInterval.Minutes()))
				for _, r := range s.collectable(s.cfg.Now(), perRound) {
					s.propose(r, nil)
				}
			}
		}
	}
}

// collectable returns requests that delete empty containers and expired TTL znodes.
func (s *Server) collectable(now time.Time, limit int) (requests []datatree.Request) {
	s.treeMu.RLock()
	paths := s.tree.Collectable(now.UnixMilli(), max(0, s.live.Load().ContainerNeverUsed.Milliseconds()), limit)
	s.treeMu.RUnlock()
	for _, path := range paths {
		requests = append(requests, datatree.Request{Op: proto.OpDeleteContainer, Body: (&proto.PathRequest{Path: &path}).Append(nil)})
	}
	return requests
}
