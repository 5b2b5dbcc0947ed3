package server

import (
	"context"
	"time"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/internal/liveness"
	"github.com/gozkd/gozkd/server/internal/members"
)

// sessionLoop is the state of runSessions, owned by its goroutine. Other goroutines give lines what
// members send.
type sessionLoop struct {
	// Everything that was heard before reportedUntil has reached the leader. reportedAt is the time
	// of the last report, reportedMono the same in nanoseconds since Server.startedMono.
	reportedUntil, reportedAt time.Time
	reportedMono              int64

	passes      liveness.Passes
	lastLogged  transitions
	lines       members.Lines
	linesLogged proto.Zxid // version of the members for which a difference of the lines was logged
	linesTried  time.Time  // by the runtime's clock
}

// commitPatience returns the time without progress after which this server counts as unable to
// commit. A loop at rest shows no progress for MaxRestTicks, and is awake some time after them.
func commitPatience(tick time.Duration) time.Duration {
	return max(tick, 2*consensus.MaxRestTicks*raftTick(tick))
}

// runSessions follows the leadership, twice a tick and whenever the leadership changes. Also twice
// a tick, it reports to the leader which sessions were heard from, or, on the leader, expires the
// sessions that were not heard from.
func (s *Server) runSessions(ctx context.Context) {
	interval := max(s.cfg.Tick/2, time.Millisecond)
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	s.loop.passes = liveness.NewPasses(interval, commitPatience(s.cfg.Tick), time.Now())
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
		lost, judges := s.loop.passes.Next(time.Now())
		if lost > 0 {
			s.giveBack(lost, now)
			ticker.Reset(interval) // the connections are read before the next pass
		}
		s.watchLeader(st)
		s.followLines(st)
		for _, c := range s.conns.all() {
			c.NoteProgress(now)
		}
		if judges {
			s.expireLocal(now)
		}
		switch {
		case !judges:
		case st.Leading:
			s.logPeers(st)
			if s.canCommit(st, now) {
				s.touchSessions()
				s.expireSessions(now)
			}
		case st.Leader != 0:
			s.report(st, now)
		}
	}
}

// giveBack lets the time lost, which has just ended, count for no session.
func (s *Server) giveBack(lost time.Duration, now time.Time) {
	s.expiry.mu.Lock()
	s.expiry.GiveBack(lost, now)
	s.expiry.mu.Unlock()
	s.conns.locals.GiveBack(lost, now)
	if lost > max(s.cfg.Tick, time.Second) {
		s.cfg.Logger.Warn("this process stood still: the time does not count for sessions; look for a paused process or virtual machine, or for a machine that is overloaded",
			"lost_ms", lost.Milliseconds())
	}
}

// canCommit reports whether this server, which leads, may judge sessions.
func (s *Server) canCommit(st consensus.Status, now time.Time) bool {
	can, changed := s.loop.passes.CanCommit(st.Progress, time.Now())
	switch {
	case changed && !can:
		s.cfg.Logger.Warn("nothing can be committed: no session expires until that is over; look at the log's disk, here and on a quorum of the members",
			"waits_ms", time.Since(st.Progress).Milliseconds())
	case changed:
		s.expiry.mu.Lock()
		s.expiry.ResetAll(now)
		s.expiry.mu.Unlock()
		s.cfg.Logger.Info("requests are committed again: every session has its full timeout")
	}
	return can
}

// expireSessions proposes to close the sessions that were not heard from in time.
func (s *Server) expireSessions(now time.Time) {
	infos, epoch := s.choose(func() []proto.SessionID {
		return s.expiry.Expired(now, func(id proto.SessionID) (uint8, time.Duration, bool) {
			info, ok := s.state.tree.Session(id)
			return info.Server, timeoutOf(info), ok
		})
	})
	for _, info := range infos {
		s.cfg.Logger.Info("session expires", "session", info.ID.String(), "timeout_ms", info.TimeoutMs)
		s.propose(expiryRequest(info, epoch), nil)
	}
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
			if !s.life.Serving.Load() { // the log is closed and takes no requests
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
	s.state.RLock()
	paths := s.state.tree.Collectable(now.UnixMilli(), max(0, s.live.Load().ContainerNeverUsed.Milliseconds()), limit)
	s.state.RUnlock()
	for _, path := range paths {
		requests = append(requests, datatree.Request{Op: proto.OpDeleteContainer, Body: (&proto.PathRequest{Path: &path}).Append(nil)})
	}
	return requests
}
