package datatree

import (
	"slices"
	"strings"

	"github.com/gozkd/gozkd/proto"
)

// Walk calls f for the znode at path and those below it, parents first and siblings by name, until f returns false. It asks for no
// permission. Data and ACL are shared and not to be changed. It reports whether there is a znode at path.
func (t *Tree) Walk(path string, f func(path string, data []byte, stat proto.Stat, acl []proto.ACL) bool) bool {
	n := t.lookup(path)
	if n == nil {
		return false
	}
	walk(n, f)
	return true
}

func walk(n *znode, f func(string, []byte, proto.Stat, []proto.ACL) bool) bool {
	if !f(n.path, n.rec.bytes(), n.stat(), n.rec.acl.acls()) {
		return false
	}
	for _, child := range slices.SortedFunc(slices.Values(n.children()), func(a, b *znode) int { return strings.Compare(a.name(), b.name()) }) {
		if !walk(child, f) {
			return false
		}
	}
	return true
}
