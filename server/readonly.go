package server

import (
	"time"

	"github.com/gozkd/gozkd/consensus"
)

// minReadOnlyPatience is a lower bound of the time for which a server that starts looks for a
// leader before it becomes read-only, as in ZooKeeper.
const minReadOnlyPatience = 2 * time.Second

// Read-only mode. With Config.ReadOnlyMode, a server that has not been in touch with a leader for
// syncLimit ticks, or that finds no leader for a while when it starts, serves reads to clients
// whose connect request says readOnly.
//
//	RO1  It shows a committed prefix. A client that has seen a later zxid gets no answer: its
//	     connection is closed, so nobody's view goes back.
//	RO2  It proposes nothing for a connection of that time. Such a connection has readOnly set for its
//	     whole life, and its writes, syncs and reconfigs are answered with -119 before they are routed.
//	RO3  Its sessions are local. The connection of a client with a global session is closed, because
//	     only a quorum knows whether the session is over, unless its id, which holds the zxid of its
//	     creation, says that this server has seen its end.
//	RO4  When the mode begins or ends, all connections are closed, and then all local sessions are
//	     forgotten. leadership.readOnly is read once for a connect request; every connection that may have
//	     read the old value is closed, and no session is added on a closed connection.

// beginReadOnly makes this server, which is not in touch with a leader, serve reads to clients that
// accept a read-only server. A server without data has nothing to serve.
func (s *leadership) beginReadOnly(st consensus.Status) {
	if !s.cfg.Standby && (!s.live.Load().ReadOnlyMode || s.alone()) || st.Fresh {
		return
	}
	s.readOnly.Store(true)
	s.cfg.Logger.Warn("read-only mode: clients that accept a read-only server can read what was committed before", "zxid", s.state.lastZxid().String())
}

// endReadOnly closes all connections if this server was read-only, so that clients look for a
// server that serves writes. The caller lets clients in again only afterwards.
func (s *leadership) endReadOnly() {
	if s.readOnly.Swap(false) {
		s.conns.drop("read-only mode ended")
		s.sessions.forgetLocals() // a client that was let in before closes with its connection, and adds no session
		s.cfg.Logger.Info("read-only mode ends")
	}
}

func (s *leadership) readOnlyStart() {
	st := s.node.Status()
	patient := s.cfg.Standby || time.Since(s.startedMono) >= max(minReadOnlyPatience, s.cfg.Tick)
	if !s.readOnly.Load() && st.Leader == 0 && patient {
		s.beginReadOnly(st)
	}
}
