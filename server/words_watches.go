package server

import (
	"bufio"
	"maps"
	"slices"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/watch"
)

// sessionIDs returns the session of each connection that has one.
func (s *Server) sessionIDs() map[watch.ConnID]proto.SessionID {
	ids := make(map[watch.ConnID]proto.SessionID)
	for id, c := range s.connections() {
		c.mu.Lock()
		if c.session != 0 {
			ids[id] = c.session
		}
		c.mu.Unlock()
	}
	return ids
}

// writeWatchesByConn answers wchc, the oldest connection first. A connection that came or went while the two tables were
// copied is left out.
func (s *Server) writeWatchesByConn(w *bufio.Writer) {
	byConn, ids := s.watches.ByConn(), s.sessionIDs()
	for _, c := range slices.Sorted(maps.Keys(byConn)) {
		id, ok := ids[c]
		if !ok {
			continue
		}
		say(w, "%s\n", id)
		for _, path := range byConn[c] {
			say(w, "\t%s\n", path)
		}
	}
	say(w, "\n")
}

// writeWatchesByPath answers wchp, sorted by path.
func (s *Server) writeWatchesByPath(w *bufio.Writer) {
	byPath, ids := s.watches.ByPath(), s.sessionIDs()
	for _, path := range slices.Sorted(maps.Keys(byPath)) {
		first := true
		for _, c := range byPath[path] {
			id, ok := ids[c]
			if !ok {
				continue
			}
			if first {
				say(w, "%s\n", path)
				first = false
			}
			say(w, "\t%s\n", id)
		}
	}
	say(w, "\n")
}
