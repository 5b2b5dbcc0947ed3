package server

import (
	"context"
	"time"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/internal/members"
)

// sessionLoop is the state of runSessions, owned by its goroutine.
type sessionLoop struct {
	// Everything that was heard before reportedUntil has reached the leader. reportedAt is the time
	// of the last report, reportedMono the same in nanoseconds since Server.startedMono.
	reportedUntil, reportedAt time.Time
	reportedMono              int64

	lastPass    time.Time     // by the runtime's clock
	lost        time.Duration // by which the last pass was late; 0: it was in time
	stalled     bool          // nothing was committed for too long, as of the last pass
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
	s.loop.lastPass = time.Now()
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
		wasLate := s.loop.lost > 0
		late := s.passIsLate(interval, now)
		if late {
			ticker.Reset(interval) // the connections are read before the next pass
		}
		s.watchLeader(st)
		s.followLines(st)
		for _, c := range s.conns.all() {
			noteProgress(c, now)
		}
		if !late || wasLate {
			s.expireLocal(now)
		}
		switch {
		case late && !wasLate:
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

// passIsLate begins a pass of runSessions, and reports whether the pass is late: the process did
// not run, or got no processor, and what clients and other members have sent meanwhile is not read
// yet. The lost time counts for no session, and the pass must neither judge nor report which
// sessions were heard. If the previous pass was late too, it may: the connections were read in
// between, and on a machine that is always overloaded dead sessions must expire at some time.
func (s *Server) passIsLate(interval time.Duration, now time.Time) bool {
	l, mono := &s.loop, time.Now()
	lost := mono.Sub(l.lastPass) - interval
	l.lastPass, l.lost = mono, 0
	if lost <= interval/4 {
		return false
	}
	l.lost = lost
	s.expiry.giveBack(lost, now)
	s.conns.locals.giveBack(lost, now)
	if lost > max(s.cfg.Tick, time.Second) {
		s.cfg.Logger.Warn("this process stood still: the time does not count for sessions; look for a paused process or virtual machine, or for a machine that is overloaded",
			"lost_ms", lost.Milliseconds())
	}
	return true
}

// canCommit reports whether this server, which leads, can commit, and so may judge sessions. While
// it cannot, a client that waits for a write may not be read, and a client that gives up cannot
// re-attach, so that expiring them would turn a slow disk into a loss of sessions. Afterwards every
// session gets a full timeout, as after an election.
func (s *Server) canCommit(st consensus.Status, now time.Time) bool {
	waits := time.Since(st.Progress) - s.loop.lost
	switch {
	case waits > commitPatience(s.cfg.Tick):
		if !s.loop.stalled {
			s.loop.stalled = true
			s.cfg.Logger.Warn("nothing can be committed: no session expires until that is over; look at the log's disk, here and on a quorum of the members",
				"waits_ms", waits.Milliseconds())
		}
		return false
	case s.loop.stalled:
		s.loop.stalled = false
		s.expiry.resetAll(now)
		s.cfg.Logger.Info("requests are committed again: every session has its full timeout")
	}
	return true
}

// expireSessions proposes to close the sessions that were not heard from in time.
func (s *Server) expireSessions(now time.Time) {
	infos, epoch := s.takeExpired(now)
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
