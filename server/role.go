package server

import (
	"time"

	"github.com/gozkd/gozkd/consensus"
)

// watchRole follows who leads. It runs twice a tick, on the goroutine of runSessions.
//
// A server that knows of no leader for syncLimit ticks closes its client connections, as ZooKeeper does: then clients know
// that they may be cut off, and try the others. Sessions live on.
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
	switch {
	case st.Leader != 0:
		if s.cutOff.Swap(false) {
			s.cfg.Logger.Info("serving clients again", "leader", st.Leader)
		}
	case now.Sub(st.Since) > time.Duration(s.cfg.SyncLimit)*s.cfg.Tick:
		if !s.cutOff.Swap(true) {
			s.cfg.Logger.Warn("no leader for syncLimit ticks: client connections are closed, and new ones refused",
				"since_ms", now.Sub(st.Since).Milliseconds(), "voters", st.Voters, "connected", s.node.Connected())
			s.dropConns()
		}
	}
	if st.Leading {
		s.beginEnsemble()
	}
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
