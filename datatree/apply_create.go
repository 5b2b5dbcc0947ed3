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
	op := createOp(x.Op, &c)
	var code proto.ErrCode
	x.res.Path, x.res.Stat, code = t.createZnode(x, &op)
	return code
}

func createOp(op proto.OpCode, c *proto.CreateRequest) proto.MultiOp {
	return proto.MultiOp{Op: op, Path: c.Path, Data: c.Data, ACL: c.ACL, Mode: c.Mode, TTL: c.TTL}
}

// creation is a create that passed all checks except that of the state's limit.
type creation struct {
	kind   kind
	path   string // with the counter
	parent record // of the parent p
	p      *znode
	list   []proto.ACL
}

// checkCreate checks all of a create with that many bytes of data, except whether the state may
// grow. It changes nothing. op.Op and op.Mode determine the kind, see createKind. scratch holds the
// path of a sequential znode.
func (st *state) checkCreate(x *txn, op *proto.MultiOp, bytes int, scratch *[]byte) (c creation, code proto.ErrCode) {
	if c.kind, code = x.createKind(op); code != proto.OK {
		return c, code
	}
	if c.kind == ephemeral && x.Session == 0 {
		return c, proto.ErrEphemeralOnLocalSession
	}
	if !splittable(op.Path) {
		return c, proto.ErrBadArguments
	}
	if c.list, code = fixACL(x, op.Path, op.ACL); code != proto.OK {
		return c, code
	}
	p := st.get(proto.ParentPath(op.Path))
	if p == nil {
		return c, proto.ErrNoNode
	}
	if !x.caller.may(proto.PermCreate, st.aclOf(p)) {
		return c, proto.ErrNoAuth
	}
	c.p, c.path, c.parent = p, op.Path, st.record(p)
	if op.Mode.Sequential() {
		*scratch = appendSequential((*scratch)[:0], op.Path, c.parent.cversion)
		c.path = textOf(*scratch)
	}
	switch {
	case proto.ValidatePath(c.path) != nil:
		return c, proto.ErrBadArguments
	case st.get(c.path) != nil:
		return c, proto.ErrNodeExists
	case c.parent.kind == ephemeral:
		return c, proto.ErrNoChildrenForEphemerals
	}
	if code := st.checkQuota(x, st.quotaOfNew(c.path, p), c.path, 1, int64(bytes)); code != proto.OK {
		return c, code
	}
	if code := x.fits("data", c.path, dataReplyBytes(bytes)); code != proto.OK {
		return c, code
	}
	name := c.path[strings.LastIndexByte(c.path, '/')+1:]
	if code := x.fits("children", p.path(), st.childrenReplyBytes(p, name)); code != proto.OK {
		return c, code
	}
	if st.index.len() >= st.mostZnodes {
		return c, x.refuse(proto.ErrSystemError, c.path, "there are %d znodes, which is the most", st.mostZnodes)
	}
	return c, proto.OK
}

func (t *Tree) createZnode(x *txn, op *proto.MultiOp) (string, proto.Stat, proto.ErrCode) {
	var none proto.Stat
	c, code := t.checkCreate(x, op, len(op.Data), &t.path)
	if code != proto.OK {
		return "", none, code
	}
	acl := t.aclKey(c.list)
	if code := t.mayGrow(x, c.path, createdBytes(c.path, len(op.Data), len(acl))); code != proto.OK {
		return "", none, code
	}

	rec := record{
		czxid: x.Zxid, mzxid: x.Zxid, pzxid: x.Zxid,
		ctimeMs: x.TimeMs, mtimeMs: x.TimeMs,
		acl: acl, kind: c.kind,
	}
	rec.setData(op.Data)
	switch c.kind {
	case ephemeral:
		rec.owner = uint64(x.Session)
	case ttl:
		rec.owner = uint64(op.TTL)
	}
	n := t.newZnode(c.p, c.path, &rec)

	c.parent.pzxid = x.Zxid
	// The next sequence number. It wraps to the smallest int32, so that names do not repeat soon.
	c.parent.cversion++
	t.update(c.p, &c.parent, 0)
	t.insert(n)
	t.emit(x, proto.EventCreated, n)
	t.emit(x, proto.EventChildrenChanged, c.p)
	return n.path(), rec.stat(0), proto.OK
}

// createKind returns the kind of the new znode: createContainer makes a container whatever the
// mode, createTTL a znode with a time to live, create and create2 a znode of the given mode, except
// that a container mode makes a persistent znode.
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

// appendSequential appends the path and the counter in ten characters, of which a minus sign is
// one, as in Java.
func appendSequential(b []byte, path string, counter int32) []byte {
	b = append(b, path...)
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
	return append(b, number...)
}

// splittable reports whether create and delete can split a path. Other checks come later.
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
		return d.Err() == nil && c.Mode.Ephemeral()
	case proto.OpMulti:
		var m proto.MultiRequest
		if m.Decode(&d, op) != nil {
			return false
		}
		return slices.ContainsFunc(m.Ops, func(o proto.MultiOp) bool {
			return o.Op != proto.OpCreateContainer && o.Mode.Ephemeral()
		})
	}
	return false
}
