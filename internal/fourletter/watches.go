package fourletter

import (
	"bufio"
	"maps"
	"slices"

	"github.com/gozkd/gozkd/internal/printable"
	"github.com/gozkd/gozkd/proto"
)

// writeWatchesByConn answers wchc, the oldest connection first.
func writeWatchesByConn(w *bufio.Writer, s Server) {
	for _, watched := range s.Watches() {
		say(w, "%s\n", proto.SessionID(watched.Session))
		for _, path := range watched.Paths {
			say(w, "\t%s\n", printable.Text(path))
		}
	}
	say(w, "\n")
}

// writeWatchesByPath answers wchp, sorted by path.
func writeWatchesByPath(w *bufio.Writer, s Server) {
	byPath := make(map[string][]int64)
	for _, watched := range s.Watches() {
		for _, path := range watched.Paths {
			byPath[path] = append(byPath[path], watched.Session)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(byPath)) {
		say(w, "%s\n", printable.Text(path))
		for _, id := range byPath[path] {
			say(w, "\t%s\n", proto.SessionID(id))
		}
	}
	say(w, "\n")
}
