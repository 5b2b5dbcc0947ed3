package datatree

import (
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

func (t *Tree) delete(x *txn) proto.ErrCode {
	var v proto.PathVersionRequest
	d := t.body(x)
	v.Decode(d)
	if d.Err() != nil {
		return proto.ErrMarshallingError
	}
	return t.deleteZnode(x, v.Path, v.Version)
}

// deleteZnode executes a delete, alone or in a multi. It needs the permission of the parent.
func (t *Tree) deleteZnode(x *txn, path string, version int32) proto.ErrCode {
	if !splittable(path) || protected(path) {
		return proto.ErrBadArguments
	}
	p := t.get(proto.ParentPath(path))
	if p == nil {
		return proto.ErrNoNode
	}
	if !x.caller.may(proto.PermDelete, t.aclOf(p)) {
		return proto.ErrNoAuth
	}
	n := t.get(path)
	if n == nil {
		return proto.ErrNoNode
	}
	r := t.record(n)
	if version != -1 && version != r.version {
		return proto.ErrBadVersion
	}
	if n.dir != 0 {
		return proto.ErrNotEmpty
	}
	_ = t.mayGrow(x, path, -createdBytes(path, len(r.data), len(r.acl))) // counted, never refused
	t.unlink(x, n)
	return proto.OK
}

// DeleteContainerBody is the body of deleteContainer, which servers propose for the znodes that
// [Tree.Collectable] returns.
type DeleteContainerBody struct {
	Path  string
	Czxid proto.Zxid // of the znode that is meant
}

// Append appends the encoding: ustring, long.
func (c DeleteContainerBody) Append(b []byte) []byte {
	return jute.AppendLong(jute.AppendString(b, c.Path), int64(c.Czxid))
}

// deleteContainer deletes a container or TTL znode. Servers propose this operation, see
// [Tree.Collectable]. Clients are refused; in ZooKeeper a client can delete any znode with it.
//
// The znode may have changed since Collectable found it: it must still be the same container or TTL
// znode, without children, and its time to live, if it has any, must have passed at the time of
// this transaction.
func (t *Tree) deleteContainer(x *txn) proto.ErrCode {
	if x.Session != 0 {
		return proto.ErrUnimplemented
	}
	var b proto.PathRequest
	d := t.body(x)
	b.Decode(d)
	created := proto.Zxid(d.Long())
	if d.Err() != nil {
		return proto.ErrMarshallingError
	}
	if b.Path == nil || !splittable(*b.Path) || protected(*b.Path) {
		return proto.ErrBadArguments
	}
	n := t.get(*b.Path)
	switch {
	case n == nil:
		return proto.ErrNoNode
	case n.dir != 0:
		return proto.ErrNotEmpty
	}
	r := t.record(n)
	if r.kind != container && !r.expired(x.TimeMs) || created != r.czxid {
		return proto.ErrBadVersion
	}
	t.unlink(x, n)
	return proto.OK
}

// unlink removes n, which must be removable, and emits the events for n and its parent.
func (t *Tree) unlink(x *txn, n *znode) {
	p := t.parent(n)
	t.remove(n)
	parent := t.record(p)
	parent.pzxid = x.Zxid
	t.update(p, &parent, 0)
	t.emit(x, proto.EventDeleted, n)
	t.emit(x, proto.EventChildrenChanged, p)
	t.discard(n)
}
