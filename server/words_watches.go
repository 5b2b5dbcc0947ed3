package server

import (
	"bufio"
	"maps"
	"slices"

	"github.com/gozkd/gozkd/proto"
)

// writeWatchesByConn answers wchc, the oldest connection first.
func (s *Server) writeWatchesByConn(w *bufio.Writer) {
	for _, watched := range s.Watches() {
		say(w, "%s\n", proto.SessionID(watched.Session))
		for _, path := range watched.Paths {
			say(w, "\t%s\n", printable(path))
		}
	}
	say(w, "\n")
}

// writeWatchesByPath answers wchp, sorted by path.
func (s *Server) writeWatchesByPath(w *bufio.Writer) {
	byPath := make(map[string][]int64)
	for _, watched := range s.Watches() {
		for _, path := range watched.Paths {
			byPath[path] = append(byPath[path], watched.Session)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(byPath)) {
		say(w, "%s\n", printable(path))
		for _, id := range byPath[path] {
			say(w, "\t%s\n", proto.SessionID(id))
		}
	}
	say(w, "\n")
}
