package datatree

import (
	"slices"
	"strings"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// Exists returns the Stat. Errors: ErrBadArguments for U+0000, ErrNoAuth without READ, ErrNoNode.
func (s *znodeStore) Exists(path string, c Caller) (proto.Stat, proto.ErrCode) {
	if strings.IndexByte(path, 0) >= 0 {
		return proto.Stat{}, proto.ErrBadArguments
	}
	n, code := s.readable(path, &c, proto.PermRead)
	if code != proto.OK {
		return proto.Stat{}, code
	}
	r := s.record(n)
	return s.stat(n, &r), proto.OK
}

// GetData returns data and Stat. The data is shared and immutable: it outlives changes of the tree,
// and the caller must not change it. nil is null. Errors: ErrNoNode, ErrNoAuth without READ.
func (s *znodeStore) GetData(path string, c Caller) (data []byte, st proto.Stat, code proto.ErrCode) {
	data, code = s.ReadData(path, &c, &st)
	return data, st, code
}

// ReadData is GetData for servers, most of whose requests are reads: the Stat is made in *st and
// never copied. After an error *st is unchanged.
func (s *znodeStore) ReadData(path string, c *Caller, st *proto.Stat) ([]byte, proto.ErrCode) {
	n, code := s.readable(path, c, proto.PermRead)
	if code != proto.OK {
		return nil, code
	}
	var r record
	s.read(n, &r)
	r.putStat(st, len(s.children(n)))
	return r.bytes(), proto.OK
}

// AppendChildren appends the jute vector of the children's names, unsorted, and returns the Stat.
// After an error b is unchanged. Errors: ErrNoNode, ErrNoAuth without READ.
func (s *znodeStore) AppendChildren(b []byte, path string, c Caller) ([]byte, proto.Stat, proto.ErrCode) {
	n, code := s.readable(path, &c, proto.PermRead)
	if code != proto.OK {
		return b, proto.Stat{}, code
	}
	children := s.children(n)
	if n.dir != 0 {
		b = slices.Grow(b, 4+4*len(children)+s.dirs.At(n.dir).nameBytes+proto.StatBytes)
	}
	b = jute.AppendInt(b, int32(len(children)))
	prefix := len(n.path()) + 1 // where the name starts in a child's path
	if n == s.root {
		prefix = 1
	}
	for _, id := range children {
		b = jute.AppendString(b, s.at(id).path()[prefix:])
	}
	r := s.record(n)
	return b, s.stat(n, &r), proto.OK
}

// GetACL returns the list, which must not be changed, and the Stat. A caller with READ but without
// ADMIN sees no digest hashes. Errors: ErrNoNode, ErrNoAuth with neither.
func (s *znodeStore) GetACL(path string, c Caller) ([]proto.ACL, proto.Stat, proto.ErrCode) {
	n, code := s.readable(path, &c, proto.PermRead|proto.PermAdmin)
	if code != proto.OK {
		return nil, proto.Stat{}, code
	}
	a := s.aclOf(n)
	list := a.acls()
	if !c.may(proto.PermAdmin, a) {
		list = maskACL(list)
	}
	r := s.record(n)
	return list, s.stat(n, &r), proto.OK
}

// AllChildrenNumber returns the number of all descendants. It walks them, except for the root. As
// in ZooKeeper, the path "" stands for the root and is counted too. Errors: ErrNoNode, ErrNoAuth
// without READ.
func (s *znodeStore) AllChildrenNumber(path string, c Caller) (int32, proto.ErrCode) {
	n, code := s.readable(path, &c, proto.PermRead)
	switch {
	case code != proto.OK:
		return 0, code
	case path == "":
		return int32(s.index.len()), proto.OK
	case n == s.root:
		return int32(s.index.len() - 1), proto.OK
	}
	return s.descendants(n), proto.OK
}

// ReplyBytes returns about how many bytes the reply to a getData, getChildren or getACL has, 0 if
// there is no znode at path that c may read.
func (s *znodeStore) ReplyBytes(op proto.OpCode, path string, c Caller) int {
	want := proto.PermRead
	if op == proto.OpGetACL {
		want |= proto.PermAdmin
	}
	n, code := s.readable(path, &c, want)
	switch {
	case code != proto.OK:
	case op == proto.OpGetACL:
		return len(s.acls.key(n.acl))
	case op == proto.OpGetData:
		r := s.record(n)
		return len(r.data)
	case n.dir != 0:
		d := s.dirs.At(n.dir)
		return 4*len(d.children) + d.nameBytes
	}
	return 0
}

// Lookup returns the zxids that setWatches compares: those of the last change of the data and of
// the children. It returns false if there is no znode at path.
func (s *znodeStore) Lookup(path string) (mzxid, pzxid proto.Zxid, ok bool) {
	n := s.lookup(path)
	if n == nil {
		return 0, 0, false
	}
	r := s.record(n)
	return r.mzxid, r.pzxid, true
}

// lookup returns the znode at path, which is not retained. "" stands for the root.
func (s *znodeStore) lookup(path string) *znode {
	if path == "" {
		return s.root
	}
	return s.get(path)
}

// readable returns the znode at path for a caller with one of the permissions.
func (s *znodeStore) readable(path string, c *Caller, want proto.Perms) (*znode, proto.ErrCode) {
	n := s.lookup(path)
	switch {
	case n == nil:
		return nil, proto.ErrNoNode
	case !c.may(want, s.aclOf(n)):
		return nil, proto.ErrNoAuth
	}
	return n, proto.OK
}

func (s *znodeStore) descendants(n *znode) int32 {
	children := s.children(n)
	sum := int32(len(children))
	for _, id := range children {
		sum += s.descendants(s.at(id))
	}
	return sum
}
