package server

import (
	"fmt"

	"github.com/gozkd/gozkd/consensus"
)

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

// StateOf returns the last zxid and the digest of the state behind it.
func StateOf(s *Server) string {
	s.tree.RLock()
	defer s.tree.RUnlock()
	return fmt.Sprintf("%v %016x", s.state.LastZxid(), s.state.Digest())
}
