package datatree

import (
	"slices"
	"strings"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// Exists returns the Stat of a znode. Errors: ErrBadArguments for U+0000, ErrNoAuth without READ,
// ErrNoNode.
func (t *Tree) Exists(path string, c Caller) (proto.Stat, proto.ErrCode) {
	if strings.IndexByte(path, 0) >= 0 {
		return proto.Stat{}, proto.ErrBadArguments
	}
	n, code := t.readable(path, &c, proto.PermRead)
	if code != proto.OK {
		return proto.Stat{}, code
	}
	var r record
	t.read(n, &r)
	return r.stat(len(t.children(n))), proto.OK
}

// GetData returns data and Stat. The data is shared and immutable: it stays valid when the tree
// changes, and the caller must not change it. nil is null. Errors: ErrNoNode, ErrNoAuth without
// READ.
func (t *Tree) GetData(path string, c Caller) (data []byte, st proto.Stat, code proto.ErrCode) {
	data, code = t.ReadData(path, &c, &st)
	return data, st, code
}

// ReadData is GetData for servers, most of whose requests are reads: the Stat is made in *st and
// never copied. After an error *st is unchanged.
func (t *Tree) ReadData(path string, c *Caller, st *proto.Stat) ([]byte, proto.ErrCode) {
	n, code := t.readable(path, c, proto.PermRead)
	if code != proto.OK {
		return nil, code
	}
	var r record
	t.read(n, &r)
	r.putStat(st, len(t.children(n)))
	return r.bytes(), proto.OK
}

// AppendChildren appends the jute vector of the children's names, unsorted, and returns the Stat.
// After an error b is unchanged. Errors: ErrNoNode, ErrNoAuth without READ.
func (t *Tree) AppendChildren(b []byte, path string, c Caller) ([]byte, proto.Stat, proto.ErrCode) {
	n, code := t.readable(path, &c, proto.PermRead)
	if code != proto.OK {
		return b, proto.Stat{}, code
	}
	children := t.children(n)
	if n.dir != 0 {
		b = slices.Grow(b, 4+4*len(children)+t.dirs.at(n.dir).nameBytes+proto.StatBytes)
	}
	b = jute.AppendInt(b, int32(len(children)))
	prefix := len(n.path()) + 1 // where the name starts in a child's path
	if n == t.root {
		prefix = 1
	}
	for _, id := range children {
		b = jute.AppendString(b, t.at(id).path()[prefix:])
	}
	r := t.record(n)
	return b, t.stat(n, &r), proto.OK
}

// GetACL returns the list, which must not be changed, and the Stat. A caller with READ but without
// ADMIN sees no digest hashes. Errors: ErrNoNode, ErrNoAuth with neither.
func (t *Tree) GetACL(path string, c Caller) ([]proto.ACL, proto.Stat, proto.ErrCode) {
	n, code := t.readable(path, &c, proto.PermRead|proto.PermAdmin)
	if code != proto.OK {
		return nil, proto.Stat{}, code
	}
	a := t.aclOf(n)
	list := a.acls()
	if !c.may(proto.PermAdmin, a) {
		list = maskACL(list)
	}
	r := t.record(n)
	return list, t.stat(n, &r), proto.OK
}

// AllChildrenNumber returns the number of all descendants. It walks them, except for the root. As
// in ZooKeeper, the path "" stands for the root and is counted too. Errors: ErrNoNode, ErrNoAuth
// without READ.
func (t *Tree) AllChildrenNumber(path string, c Caller) (int32, proto.ErrCode) {
	n, code := t.readable(path, &c, proto.PermRead)
	switch {
	case code != proto.OK:
		return 0, code
	case path == "":
		return int32(t.index.len()), proto.OK
	case n == t.root:
		return int32(t.index.len() - 1), proto.OK
	}
	return t.descendants(n), proto.OK
}

// ReplyBytes returns about how many bytes the reply to a getChildren or getACL has, 0 if there is
// no znode at path.
func (t *Tree) ReplyBytes(op proto.OpCode, path string) int {
	n := t.lookup(path)
	switch {
	case n == nil:
	case op == proto.OpGetACL:
		return len(t.acls.key(n.acl))
	case n.dir != 0:
		d := t.dirs.at(n.dir)
		return 4*len(d.children) + d.nameBytes
	}
	return 0
}

// Lookup returns the zxids that setWatches compares: those of the last change of the data and of
// the children. It returns false if there is no znode at path.
func (t *Tree) Lookup(path string) (mzxid, pzxid proto.Zxid, ok bool) {
	n := t.lookup(path)
	if n == nil {
		return 0, 0, false
	}
	r := t.record(n)
	return r.mzxid, r.pzxid, true
}

// lookup returns the znode at path, which is not retained. "" stands for the root.
func (t *Tree) lookup(path string) *znode {
	if path == "" {
		return t.root
	}
	return t.get(path)
}

// readable returns the znode at path for a caller with one of the permissions.
func (t *Tree) readable(path string, c *Caller, want proto.Perms) (*znode, proto.ErrCode) {
	n := t.lookup(path)
	switch {
	case n == nil:
		return nil, proto.ErrNoNode
	case !c.may(want, t.aclOf(n)):
		return nil, proto.ErrNoAuth
	}
	return n, proto.OK
}

func (t *Tree) descendants(n *znode) int32 {
	children := t.children(n)
	sum := int32(len(children))
	for _, id := range children {
		sum += t.descendants(t.at(id))
	}
	return sum
}
