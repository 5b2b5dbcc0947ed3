package server

import (
	"time"

	"github.com/gozkd/gozkd/consensus"
)

// minReadOnlyPatience is a lower bound of the time for which a server that starts looks for a leader
// before it becomes read-only, as in ZooKeeper.
const minReadOnlyPatience = 2 * time.Second

// beginReadOnly makes this server, which is not in touch with a leader, serve reads to clients that
// accept a read-only server. A server without data has nothing to serve.
func (s *Server) beginReadOnly(st consensus.Status) {
	if !s.live.Load().ReadOnlyMode || s.alone() || st.Fresh {
		return
	}
	s.leader.readOnly.Store(true)
	s.cfg.Logger.Warn("read-only mode: clients that accept a read-only server can read what was committed before", "zxid", s.treeStats().zxid.String())
}

// endReadOnly closes all connections if this server was read-only, so that clients look for a server
// that serves writes. The caller lets clients in again only afterwards.
func (s *Server) endReadOnly() {
	if s.leader.readOnly.Swap(false) {
		s.dropConns()
		s.conns.locals.clear() // a client that was let in before closes with its connection, and adds no session
		s.cfg.Logger.Info("read-only mode ends")
	}
}

// readOnlyStart makes a server that starts, and has found no leader, read-only after a while, and
// expires the sessions of the clients that it lets in.
func (s *Server) readOnlyStart() {
	st := s.node.Status()
	switch {
	case s.leader.readOnly.Load():
		s.expireLocal(s.cfg.Now())
	case st.Leader == 0 && time.Since(s.startedMono) >= max(minReadOnlyPatience, s.cfg.Tick):
		s.beginReadOnly(st)
	}
}
