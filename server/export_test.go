package server

import "github.com/gozkd/gozkd/consensus"

// What only tests may see and do.

// LeaderOf returns the member that s takes for the leader, 0 for none.
func LeaderOf(s *Server) int {
	if s.node == nil {
		return 0
	}
	return int(s.node.Status().Leader)
}

// StatusOf returns what a started server's consensus says of itself.
func StatusOf(s *Server) consensus.Status { return s.node.Status() }
