package server

import (
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/server/internal/liveness"
)

// leaderContact records whether this server is in touch with a leader.
type leaderContact struct {
	lost atomic.Bool // there was no contact for too long: clients are refused, unless readOnly is set
	// readOnly: clients that accept a read-only server are served. Set while there is no contact
	// for too long, or at the start not yet.
	readOnly atomic.Bool
	// confirmed is when the leader last said that it hears this server, in nanoseconds since
	// Server.startedMono.
	confirmed atomic.Int64
	stamp     atomic.Pointer[leaderStamp] // nil: the leader has not answered a report yet
	contact   liveness.Contact            // owned by the goroutine of runSessions
	// sentAway is when this server became the leader that closed its clients' connections
	// (Status.Since). Owned by the goroutine of runSessions.
	sentAway time.Time
}

// watchLeader follows the leadership. watchLeader runs twice a tick and whenever the leadership
// changes, on the goroutine of runSessions.
//
// A server that for syncLimit ticks knows no leader, or hears a leader but is not heard by it,
// closes its client connections, as ZooKeeper does: then clients know that they may be cut off, and
// try other servers. Sessions live on.
func (s *Server) watchLeader(st consensus.Status) {
	s.expiry.mu.Lock()
	s.takeLead()
	s.expiry.mu.Unlock()
	confirmed := s.startedMono.Add(time.Duration(s.leader.confirmed.Load()))
	lastGood := s.leader.contact.Last(st.Leading, st.Leader != 0, st.Since, confirmed, time.Now())
	switch inTime := time.Since(lastGood) <= time.Duration(s.cfg.SyncLimit)*s.cfg.Tick; {
	case st.Leader != 0 && inTime:
		if s.leader.lost.Load() {
			s.endReadOnly()
			s.leader.lost.Store(false)
			s.cfg.Logger.Info("serving clients again", "leader", memberid.Number(st.Leader))
		}
	case !inTime:
		if !s.leader.lost.Swap(true) {
			why := "no leader for syncLimit ticks"
			if st.Leader != 0 {
				why = "the leader has not heard this server for syncLimit ticks"
			}
			s.cfg.Logger.Warn(why+": client connections are closed, and new ones refused",
				"since_ms", time.Since(lastGood).Milliseconds(), "leader", memberid.Number(st.Leader), "voters", memberid.Numbers(st.Voters), "connected", memberid.Numbers(s.node.Connected()))
			s.dropConns()
			s.conns.locals.Clear() // as in ZooKeeper; see attachLocal for those that connect at this moment
			s.beginReadOnly(st)
		}
		if last := &s.loop.lastLogged; last.mode != modeQuorumGone && logQuorumGone(s, st) {
			last.mode = modeQuorumGone
		}
	}
	if st.Leading {
		s.beginEnsemble()
	}
	s.sendAway(st)
	s.state.wake()
	s.logRole(st)
}

// leavesClients reports whether this server leaves clients to the other members.
func (s *Server) leavesClients(st consensus.Status) bool {
	return s.cfg.LeaderWithoutClients && st.Leading && len(st.Voters)+len(st.Learners) > 1
}

// sendAway closes the connections of all clients once per leadership in which this server leaves
// clients to the other members. A connection that is made later is refused by its handshake.
func (s *Server) sendAway(st consensus.Status) {
	switch {
	case !s.leavesClients(st):
		s.leader.sentAway = time.Time{}
	case !s.leader.sentAway.Equal(st.Since):
		s.leader.sentAway = st.Since
		s.cfg.Logger.Info("this server leads and leaves clients to the others (leaderServes=no): their connections are closed", "connections", s.conns.count())
		s.dropConns()
	}
}

// dropConns closes every connection; their clients may reconnect.
func (s *Server) dropConns() {
	for _, c := range s.conns.all() {
		c.Close()
	}
}
