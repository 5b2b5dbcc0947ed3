package server

import "github.com/gozkd/gozkd/datatree"

// Znode is one znode at one moment.
type Znode = datatree.ZnodeInfo

// Walk calls f for the znode at path and all below it, parents first and siblings by name, until f returns false, all at
// the same moment. It checks no ACL. f must not call the server, which waits for it, and must not change Data and ACL,
// which are shared. Walk reports whether there is a znode at path.
func (s *Server) Walk(path string, f func(Znode) bool) bool {
	s.tree.RLock()
	defer s.tree.RUnlock()
	return s.state.Walk(path, f)
}
