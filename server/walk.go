package server

import "github.com/gozkd/gozkd/proto"

// Znode is one znode at one moment.
type Znode struct {
	Path string
	Data []byte // nil: null, which is not the same as empty
	Stat proto.Stat
	ACL  []proto.ACL
}

// Walk calls f for the znode at path and all below it, parents first and siblings by name, until f returns false, all at the same
// moment. ACLs are not asked. What f is given is shared: it must not be changed, and f must not call the server, which
// waits for it. It reports whether there is a znode at path.
func (s *Server) Walk(path string, f func(Znode) bool) bool {
	s.tree.RLock()
	defer s.tree.RUnlock()
	return s.state.Walk(path, func(path string, data []byte, stat proto.Stat, acl []proto.ACL) bool {
		return f(Znode{path, data, stat, acl})
	})
}
