package server

import (
	"maps"
	"slices"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/watch"
)

// SessionPaths names what belongs to a session.
type SessionPaths struct {
	Session int64
	Paths   []string // sorted
}

// Watches returns the paths that connections to this server watch, the oldest connection first: data, persistent and recursive
// watches, as the wchc word has them. A connection that came or went while the two tables were copied is left out. The
// caller owns the result; its cost grows with the number of watches, and what sets or fires watches waits meanwhile.
func (s *Server) Watches() []SessionPaths {
	byConn, ids := s.watches.ByConn(), s.sessionIDs()
	all := make([]SessionPaths, 0, len(byConn))
	for _, c := range slices.Sorted(maps.Keys(byConn)) {
		if id, ok := ids[c]; ok {
			all = append(all, SessionPaths{int64(id), byConn[c]})
		}
	}
	return all
}

// WatchCounts returns how many connections have watches of the kinds that Watches returns, on how many paths, and how many
// pairs of both there are.
func (s *Server) WatchCounts() (connections, paths, watches int) { return s.watches.Stats() }

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
