package datatree

import "github.com/gozkd/gozkd/proto"

// Walk calls f for the znode at path and those below it, parents first and siblings by name, until f returns false. It asks for no
// permission. Data and ACL are shared and not to be changed. It reports whether there is a znode at path.
func (t *Tree) Walk(path string, f func(path string, data []byte, stat proto.Stat, acl []proto.ACL) bool) bool {
	n := t.lookup(path)
	if n == nil {
		return false
	}
	t.walk(n, f)
	return true
}

func (t *Tree) walk(n *znode, f func(string, []byte, proto.Stat, []proto.ACL) bool) bool {
	r := n.record()
	if !f(n.path(), r.bytes(), t.stat(n, &r), t.aclOf(n).acls()) {
		return false
	}
	for _, child := range t.sorted(t.children(n)) {
		if !t.walk(child, f) {
			return false
		}
	}
	return true
}
