package datatree

import (
	"slices"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// maxTTLMs is the longest time to live, 2⁴⁰-1 ms: ZooKeeper stores it in 40 bits.
const maxTTLMs = 1<<40 - 1

func (t *Tree) create(x *txn) proto.ErrCode {
	var c proto.CreateRequest
	d := t.body(x)
	c.Decode(d, x.Op)
	if d.Err() != nil {
		return proto.ErrMarshallingError
	}
	if c.NullPath { // ZooKeeper checks mode and TTL before the path
		if _, code := x.createKind(&proto.MultiOp{Op: x.Op, Mode: c.Mode, TTL: c.TTL}); code != proto.OK {
			return code
		}
		return proto.ErrMarshallingError
	}
	op := proto.MultiOp{Op: x.Op, Path: c.Path, Data: c.Data, ACL: c.ACL, Mode: c.Mode, TTL: c.TTL}
	var code proto.ErrCode
	x.res.Path, x.res.Stat, code = t.createZnode(x, &op)
	return code
}

// createZnode executes a create, alone or in a multi. op.Op and op.Mode determine the kind, see
// createKind.
func (t *Tree) createZnode(x *txn, op *proto.MultiOp) (string, proto.Stat, proto.ErrCode) {
	var none proto.Stat
	k, code := x.createKind(op)
	if code != proto.OK {
		return "", none, code
	}
	if k == ephemeral && x.Session == 0 {
		return "", none, proto.ErrEphemeralOnLocalSession
	}
	if !splittable(op.Path) {
		return "", none, proto.ErrBadArguments
	}
	list, code := fixACL(x, op.Path, op.ACL)
	if code != proto.OK {
		return "", none, code
	}
	p := t.get(proto.ParentPath(op.Path))
	if p == nil {
		return "", none, proto.ErrNoNode
	}
	if !x.caller.may(proto.PermCreate, t.aclOf(p)) {
		return "", none, proto.ErrNoAuth
	}
	path, parent := op.Path, t.record(p)
	if op.Mode.Sequential() {
		path = t.sequential(path, parent.cversion)
	}
	switch {
	case proto.ValidatePath(path) != nil:
		return "", none, proto.ErrBadArguments
	case t.get(path) != nil:
		return "", none, proto.ErrNodeExists
	case parent.kind == ephemeral:
		return "", none, proto.ErrNoChildrenForEphemerals
	}
	if code := t.checkQuota(x, t.quotaOfNew(path, p), path, 1, int64(len(op.Data))); code != proto.OK {
		return "", none, code
	}
	if code := x.fits("data", path, dataReplyBytes(len(op.Data))); code != proto.OK {
		return "", none, code
	}
	acl := t.aclKey(list)
	if code := t.mayGrow(x, path, len(path)+len(op.Data)+len(acl)+headCost+znodeCost); code != proto.OK {
		return "", none, code
	}
	name := path[strings.LastIndexByte(path, '/')+1:]
	if code := x.fits("children", p.path(), t.childrenReplyBytes(p, name)); code != proto.OK {
		return "", none, code
	}
	if t.index.len() >= t.mostZnodes {
		return "", none, x.refuse(proto.ErrSystemError, path, "there are %d znodes, which is the most", t.mostZnodes)
	}

	rec := record{
		czxid: x.Zxid, mzxid: x.Zxid, pzxid: x.Zxid,
		ctimeMs: x.TimeMs, mtimeMs: x.TimeMs,
		acl: acl, kind: k,
	}
	rec.setData(op.Data)
	switch k {
	case ephemeral:
		rec.owner = uint64(x.Session)
	case ttl:
		rec.owner = uint64(op.TTL)
	}
	n := t.newZnode(p, path, &rec)

	parent.pzxid = x.Zxid
	// The next sequence number. It wraps to the smallest int32, so that names do not repeat soon.
	parent.cversion++
	t.update(p, &parent, 0)
	t.insert(n)
	t.emit(x, proto.EventCreated, n)
	t.emit(x, proto.EventChildrenChanged, p)
	return n.path(), rec.stat(0), proto.OK
}

// createKind returns the kind of the new znode: createContainer makes a container whatever the
// mode, createTTL a znode with a time to live, create and create2 what the mode says, except that a
// container mode makes a persistent znode.
func (x *txn) createKind(op *proto.MultiOp) (kind, proto.ErrCode) {
	switch {
	case !op.Mode.Valid():
		return 0, proto.ErrBadArguments
	case op.Mode.TTL() && x.Flags&FlagRefuseTTL != 0:
		return 0, proto.ErrUnimplemented
	case op.Op == proto.OpCreateTTL:
		// NB: ZooKeeper accepts a negative TTL with another mode and then cannot restart.
		if !op.Mode.TTL() || op.TTL <= 0 || op.TTL > maxTTLMs {
			return 0, proto.ErrBadArguments
		}
		return ttl, proto.OK
	case op.Mode.TTL():
		return 0, proto.ErrBadArguments
	case op.Op == proto.OpCreateContainer:
		return container, proto.OK
	case op.Mode.Ephemeral():
		return ephemeral, proto.OK
	}
	return persistent, proto.OK
}

// sequential returns the path with the counter in ten characters, of which a minus sign is one, as
// in Java. The result is valid until the next call.
func (t *Tree) sequential(path string, counter int32) string {
	b := append(t.path[:0], path...)
	abs := int64(counter)
	digits := 10
	if abs < 0 {
		b, abs, digits = append(b, '-'), -abs, 9
	}
	var scratch [10]byte
	number := strconv.AppendInt(scratch[:0], abs, 10)
	for range digits - len(number) {
		b = append(b, '0')
	}
	t.path = append(b, number...)
	return textOf(t.path)
}

// splittable reports whether create and delete can split a path into parent and name. Other checks
// come later.
func splittable(path string) bool {
	return strings.IndexByte(path, '/') >= 0 && strings.IndexByte(path, 0) < 0
}

// CreatesEphemeral reports whether a client's request asks for an ephemeral znode, as far as it can
// be decoded, so that it needs a session in the tree.
func CreatesEphemeral(op proto.OpCode, body []byte) bool {
	d := jute.NewDecoder(body)
	d.AliasStrings()
	switch op {
	case proto.OpCreate, proto.OpCreate2:
		var c proto.CreateRequest
		c.Decode(&d, op)
		return d.Err() == nil && c.Mode.Valid() && c.Mode.Ephemeral()
	case proto.OpMulti:
		var m proto.MultiRequest
		if m.Decode(&d, op) != nil {
			return false
		}
		return slices.ContainsFunc(m.Ops, func(o proto.MultiOp) bool {
			return o.Op.Info().Group == "create" && o.Op != proto.OpCreateContainer && o.Mode.Valid() && o.Mode.Ephemeral()
		})
	}
	return false
}
