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

	type owner struct {
		id    proto.SessionID
		paths []string
	}
	var owners []owner
	s.tree.RLock()
	for id, paths := range s.state.EphemeralsBySession() {
		owners = append(owners, owner{id, paths})
	}
	s.tree.RUnlock()
	say(w, "ephemeral nodes dump:\nSessions with Ephemerals (%d):\n", len(owners))
	for i := range owners {
		say(w, "%s:\n", owners[i].id)
		for _, path := range owners[i].paths {
			say(w, "\t%s\n", path)
		}
	}

	conns := s.connFacts(nil)
	for i := range conns { // sessions expire by whole ticks, and their connections with them
		conns[i].expires = conns[i].expires.Truncate(s.cfg.Tick).Add(s.cfg.Tick)
	}
	slices.SortStableFunc(conns, func(a, b connFacts) int { return a.expires.Compare(b.expires) })
	var sets [][]connFacts
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
			say(w, "\tip: %s sessionId: %s\n", set[i].peer, set[i].session)
		}
	}
}

// writeSessionsByExpiry writes when sessions expire, as the server knows that decides about it.
func (s *Server) writeSessionsByExpiry(w *bufio.Writer) {
	s.trackMu.Lock()
	buckets := s.tracker.Buckets()
	s.trackMu.Unlock()
	n := 0
	for i := range buckets {
		n += len(buckets[i].IDs)
	}
	say(w, "Session Sets (%d)/(%d):\n", len(buckets), n)
	for i := range buckets {
		say(w, "%d expire at %s:\n", len(buckets[i].IDs), buckets[i].At.Format(javaDate))
		for _, id := range buckets[i].IDs {
			say(w, "\t%s\n", id)
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
