package server

import (
	"bufio"
	"slices"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
)

// javaDate is how java.util.Date prints itself.
const javaDate = "Mon Jan 02 15:04:05 MST 2006"

// writeDump answers dump: when sessions expire, who owns which ephemerals, and when connections are closed.
func (s *Server) writeDump(w *bufio.Writer) {
	say(w, "SessionTracker dump:\n")
	if mode := s.mode(); mode == modeStandalone || mode == modeLeader {
		s.writeSessionsByExpiry(w)
	} else {
		s.writeSessions(w)
	}

	owners := s.Ephemerals()
	say(w, "ephemeral nodes dump:\nSessions with Ephemerals (%d):\n", len(owners))
	for _, owner := range owners {
		say(w, "%s:\n", proto.SessionID(owner.Session))
		for _, path := range owner.Paths {
			say(w, "\t%s\n", path)
		}
	}

	conns := s.Connections()
	for i := range conns { // sessions expire by whole ticks, and their connections with them
		conns[i].expires = conns[i].expires.Truncate(s.cfg.Tick).Add(s.cfg.Tick)
	}
	slices.SortStableFunc(conns, func(a, b Connection) int { return a.expires.Compare(b.expires) })
	var sets [][]Connection
	for rest := conns; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].expires.Equal(rest[0].expires) {
			n++
		}
		sets, rest = append(sets, rest[:n]), rest[n:]
	}
	say(w, "Connections dump:\nConnections Sets (%d)/(%d):\n", len(sets), len(conns))
	for _, set := range sets {
		say(w, "%d expire at %s:\n", len(set), set[0].expires.Format(javaDate))
		for i := range set {
			say(w, "\tip: /%s sessionId: %s\n", set[i].Remote, proto.SessionID(set[i].Session))
		}
	}
}

// writeSessionsByExpiry writes when sessions expire, as the server knows that decides about it.
func (s *Server) writeSessionsByExpiry(w *bufio.Writer) {
	buckets := s.Expiries()
	n := 0
	for i := range buckets {
		n += len(buckets[i].Sessions)
	}
	say(w, "Session Sets (%d)/(%d):\n", len(buckets), n)
	for i := range buckets {
		say(w, "%d expire at %s:\n", len(buckets[i].Sessions), buckets[i].At.Format(javaDate))
		for _, id := range buckets[i].Sessions {
			say(w, "\t%s\n", proto.SessionID(id))
		}
	}
}

// writeSessions writes all sessions with their timeouts, sorted: the leader knows more, but here is not the leader.
func (s *Server) writeSessions(w *bufio.Writer) {
	var infos []datatree.SessionInfo
	s.tree.RLock()
	infos = slices.AppendSeq(infos, s.state.Sessions())
	s.tree.RUnlock()
	say(w, "Global Sessions(%d):\n", len(infos))
	for i := range infos {
		say(w, "%s\t%dms\n", infos[i].ID, infos[i].TimeoutMs)
	}
}
