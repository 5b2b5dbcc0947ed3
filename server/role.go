package server

import (
	"time"

	"github.com/gozkd/gozkd/consensus"
)

// watchRole follows who leads. It runs twice a tick, on the goroutine of runSessions.
//
// A server that knows of no leader for syncLimit ticks, or can't reach the one that it hears, closes its client connections, as
// ZooKeeper does: then clients know that they may be cut off, and try the others. Sessions live on.
func (s *Server) watchRole(st consensus.Status) {
	s.trackMu.Lock()
	s.takeLead()
	s.trackMu.Unlock()
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

// takeLead gives every session a full timeout if this server has come to lead: nobody knows whom the leader before has heard from. s.trackMu
// is held.
func (s *Server) takeLead() {
	switch st := s.node.Status(); {
	case !st.Leading:
		s.ledSince = time.Time{}
	case !st.Since.Equal(s.ledSince):
		s.ledSince = st.Since
		s.tracker.ResetAll(s.cfg.Now())
		s.digests.forget()
	}
}

// dropConns closes every connection; their clients may come back.
func (s *Server) dropConns() {
	for _, c := range s.connections() {
		c.close()
	}
}

// ready reports whether clients can be served.
func (s *Server) ready() bool { return s.serving.Load() && !s.cutOff.Load() }
