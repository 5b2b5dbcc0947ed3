package datatree

import "github.com/gozkd/gozkd/proto"

// Walk calls f for the znode at path and all below it, parents first and siblings by name, until f
// returns false. It checks no ACL, and reports whether there is a znode at path.
func (s *znodeStore) Walk(path string, f func(proto.Znode) bool) bool {
	n := s.lookup(path)
	if n == nil {
		return false
	}
	s.walk(n, f)
	return true
}

func (s *znodeStore) walk(n *znode, f func(proto.Znode) bool) bool {
	r := n.record()
	z := proto.Znode{Path: n.path(), Data: r.bytes(), Stat: s.stat(n, &r), ACL: s.aclOf(n).acls()}
	switch r.kind {
	case ephemeral:
		z.Mode = proto.ModeEphemeral
	case container:
		z.Mode = proto.ModeContainer
	case ttl:
		z.Mode, z.TTLMs = proto.ModePersistentTTL, int64(r.owner)
	}
	if !f(z) {
		return false
	}
	for _, child := range s.sorted(s.children(n)) {
		if !s.walk(child, f) {
			return false
		}
	}
	return true
}
