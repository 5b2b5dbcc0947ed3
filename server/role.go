package server

import (
	"time"

	"github.com/gozkd/gozkd/consensus"
)

// watchRole follows who leads. It runs twice a tick, on the goroutine of runSessions.
//
// A server that knows of no leader for syncLimit ticks, or can't reach the one that it hears, closes its client connections, as
// ZooKeeper does: then clients know that they may be cut off, and try the others. Sessions live on.
func (s *Server) watchRole(st consensus.Status, now time.Time) {
	switch {
	case st.Leading && !st.Since.Equal(s.ledSince):
		// Nobody knows whom the leader before has heard from: everybody gets a full timeout.
		s.ledSince = st.Since
		s.trackMu.Lock()
		s.tracker.ResetAll(now)
		s.trackMu.Unlock()
		s.digests.forget()
	case !st.Leading:
		s.ledSince = time.Time{}
	}
	last := st.Since // when all was well
	if heardOf := s.begun.Add(time.Duration(s.heardOf.Load())); st.Leading {
		last = time.Now()
	} else if st.Leader != 0 && heardOf.After(last) {
		last = heardOf
	}
	switch within := time.Since(last) <= time.Duration(s.cfg.SyncLimit)*s.cfg.Tick; {
	case st.Leader != 0 && within:
		if s.cutOff.Swap(false) {
			s.cfg.Logger.Info("serving clients again", "leader", st.Leader)
		}
	case !within:
		if !s.cutOff.Swap(true) {
			why := "no leader for syncLimit ticks"
			if st.Leader != 0 {
				why = "the leader has not heard this server for syncLimit ticks"
			}
			s.cfg.Logger.Warn(why+": client connections are closed, and new ones refused",
				"since_ms", time.Since(last).Milliseconds(), "leader", st.Leader, "voters", st.Voters, "connected", s.node.Connected())
			s.dropConns()
		}
	}
	if st.Leading {
		s.beginEnsemble()
	}
	s.reached.wake()
	s.tellRole(st)
}

// dropConns closes every connection; their clients may come back.
func (s *Server) dropConns() {
	for _, c := range s.connections() {
		c.close()
	}
}

// ready reports whether clients can be served.
func (s *Server) ready() bool { return s.serving.Load() && !s.cutOff.Load() }
