package datatree

import "github.com/gozkd/gozkd/proto"

func (t *Tree) setData(x *txn) proto.ErrCode {
	var s proto.SetDataRequest
	d := t.body(x)
	s.Decode(d)
	if d.Err() != nil {
		return proto.ErrMarshallingError
	}
	var code proto.ErrCode
	x.res.Stat, code = t.setZnodeData(x, s.Path, s.Data, s.Version)
	return code
}

func (t *Tree) setZnodeData(x *txn, path string, data []byte, version int32) (proto.Stat, proto.ErrCode) {
	var none proto.Stat
	n, code := t.target(x, path, proto.PermWrite)
	if code != proto.OK {
		return none, code
	}
	rec := t.record(n)
	grown := int64(len(data) - len(rec.data))
	if code := t.checkQuota(x, t.quotaOf(n), path, 0, grown); code != proto.OK {
		return none, code
	}
	if version != -1 && version != rec.version {
		return none, proto.ErrBadVersion
	}
	if code := x.fits("data", path, dataReplyBytes(len(data))); code != proto.OK {
		return none, code
	}
	if code := t.mayGrow(x, path, int(grown)); code != proto.OK {
		return none, code
	}
	rec.setData(data)
	rec.version++
	rec.mzxid, rec.mtimeMs = x.Zxid, x.TimeMs
	t.update(n, &rec, grown)
	t.emit(x, proto.EventDataChanged, n)
	return t.stat(n, &rec), proto.OK
}

// setACL replaces the list. The next request is already checked against the new list; ZooKeeper
// checks some later requests against the old list.
func (t *Tree) setACL(x *txn) proto.ErrCode {
	var s proto.SetACLRequest
	d := t.body(x)
	s.Decode(d)
	if d.Err() != nil {
		return proto.ErrMarshallingError
	}
	if proto.ValidatePath(s.Path) != nil {
		return proto.ErrBadArguments
	}
	list, code := fixACL(x, s.Path, s.ACL)
	if code != proto.OK {
		return code
	}
	n, code := t.target(x, s.Path, proto.PermAdmin)
	if code != proto.OK {
		return code
	}
	rec := t.record(n)
	if s.Version != -1 && s.Version != rec.aversion {
		return proto.ErrBadVersion
	}
	acl := t.aclKey(list)
	if code := t.mayGrow(x, s.Path, len(acl)-len(rec.acl)); code != proto.OK {
		return code
	}
	rec.acl = acl
	rec.aversion++
	t.update(n, &rec, 0)
	x.res.Stat = t.stat(n, &rec)
	return proto.OK
}

// check executes the check of a multi: the znode must exist and have that version.
func (t *Tree) check(x *txn, path string, version int32) proto.ErrCode {
	n, code := t.target(x, path, proto.PermRead)
	if code != proto.OK || version == -1 {
		return code
	}
	if r := t.record(n); version != r.version {
		return proto.ErrBadVersion
	}
	return proto.OK
}

// target returns the znode at path if the caller has the permission.
func (t *Tree) target(x *txn, path string, want proto.Perms) (*znode, proto.ErrCode) {
	n := t.get(path)
	switch {
	case n == nil && proto.ValidatePath(path) != nil: // a path that has a znode is valid
		return nil, proto.ErrBadArguments
	case n == nil:
		return nil, proto.ErrNoNode
	case !x.caller.may(want, t.aclOf(n)):
		return nil, proto.ErrNoAuth
	}
	return n, proto.OK
}
