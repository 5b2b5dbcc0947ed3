package datatree

import (
	"encoding/binary"
	"strings"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// Limit bounds the growth of the state (D8). It is part of the state, so that all members refuse
// the same requests. The zero value bounds nothing. See docs/adr/0014-full-refuses-growth.md.
type Limit struct {
	// Weight is the largest weight at which the state may grow; see [Tree.Weight]. 0: any.
	Weight int64
	// Member is the id of the member that cannot hold a larger state, and Cause the reason.
	Cause  LimitCause
	Member uint8
	// Full says that growth is refused. Full begins with the first refusal, or with a Weight below
	// the weight of the state, and ends when the state weighs less than 95 percent of Weight.
	Full bool
}

// LimitCause is the resource that a member lacks.
type LimitCause uint8

// The causes of a Limit.
const (
	LimitedByNothing LimitCause = iota
	LimitedByMemory
	LimitedByDisk
)

func (c LimitCause) String() string { return [...]string{"none", "memory", "disk"}[c] }

// Resumes returns the weight below which a full state may grow again.
func (l Limit) Resumes() int64 { return l.Weight / 100 * fullPercent }

// SetLimitBody is the body of setLimit, which the leader proposes.
type SetLimitBody struct {
	Limit        // without Full
	Epoch uint32 // of the leader's zxids when it decided
}

// Append appends the encoding: uvarint weight, cause, member, uvarint epoch.
func (l SetLimitBody) Append(b []byte) []byte {
	return binary.AppendUvarint(l.Limit.append(b), uint64(l.Epoch))
}

// The bytes of memory that are not counted one by one. They are part of the rules that all members
// follow: another value needs another feature level.
const (
	// ZnodeCost is the memory of a znode besides its record in a checkpoint: its slot, its place in
	// the index and in the list of its parent's children, and the rounding of its blob.
	ZnodeCost = 80
	// headCost is more than the part of a blob that is neither path nor ACL nor data.
	headCost = 56
	// sessionCost is the memory of a session: its record, and the servers' fields about it.
	sessionCost = 600
	// A state of fullPercent of the limit is no longer full. sessionPercent are kept for sessions,
	// and no less than sessionBytes, however low the limit is: a disk below its reserve makes it 1.
	fullPercent, sessionPercent, sessionBytes = 95, 5, 1000 * sessionCost
)

// weight is the memory that a znode with this blob takes.
func (b blob) weight() int64 { return ZnodeCost + int64(len(b.text)+len(b.tail())) }

// Weight returns how many bytes of memory the state takes, computed from the state alone: for each
// znode the bytes of its record in a checkpoint and a constant, and a constant for each session.
func (st *state) Weight() int64 { return st.weight + int64(len(st.sessions))*sessionCost }

// WeightParts is how many parts WeighPart knows.
const WeightParts = len(index{}.shards)

// WeighPart calls f for each znode of one of WeightParts parts of about one size. child is the name
// of the child of the root that the znode is or is below, or "" for the root, and must not be
// retained. The weights in all parts and those of the sessions add up to Weight.
func (st *state) WeighPart(part int, f func(child string, weight int64)) {
	for _, e := range st.index.shards[part].slots {
		if e == 0 {
			continue
		}
		n := st.at(e.id())
		child, _, _ := strings.Cut(n.path()[1:], "/")
		f(child, n.blob().weight())
	}
}

// Limit returns the limit of the state's growth.
func (st *state) Limit() Limit { return st.limit }

func (st *state) replaceLimit(l Limit) {
	st.limit = l
	st.setSingle(limitPrefix, l == (Limit{}), appendLimit(nil, l))
}

// setLimit replaces the limit, unless the leader has changed: the new leader decides anew.
func (t *Tree) setLimit(x *txn) proto.ErrCode {
	d := reader{b: x.Body}
	l, epoch := d.limit(), d.uint32()
	switch {
	case x.Session != 0:
		return proto.ErrUnimplemented
	case d.end() != nil || l.check() != nil:
		return proto.ErrMarshallingError
	case epoch != x.Zxid.Epoch():
		return proto.ErrBadVersion
	}
	l.Full = l.Weight != 0 && (t.limit.Full || t.Weight() > l.Weight)
	t.replaceLimit(l)
	return proto.OK
}

// mayGrow refuses a change at path that adds bytes to the weight, if the state is full or would be.
// Only paths, data and ACLs count: the times and versions of a Stat take more bytes, too, as they
// rise. The operations of a multi pass, and multiMayGrow decides about their sum.
func (t *Tree) mayGrow(x *txn, path string, bytes int) proto.ErrCode {
	if t.inMulti {
		t.grown += int64(bytes)
		return proto.OK
	}
	if bytes <= 0 || t.limit.Weight == 0 {
		return proto.OK
	}
	return t.mayWeigh(x, path, t.Weight()+int64(bytes))
}

// RefusesGrowth reports whether Apply would refuse the request for the limit alone, because the
// state is full, or would be for this request only. Then the server of the client need not put the
// request into the log, if the client has no request under way that could shrink the state.
// RefusesGrowth knows creates only: other growth is rarer, and a server that lags cannot tell
// whether a set grows the state.
//
// missing is how many bytes of the body have not arrived. If it is not 0, only the path and the
// length of the data are read, and the rest is taken for that of a persistent znode with a valid
// ACL.
func (st *state) RefusesGrowth(r *Request, missing int) bool {
	if r.Op.Info().Group != "create" || !st.outgrown(len(r.Body)+missing+headCost+ZnodeCost) {
		return false
	}
	var c proto.CreateRequest
	d := jute.NewDecoder(r.Body)
	d.AliasStrings()
	bytes, op := 0, r.Op
	if missing > 0 {
		c.Path, bytes, c.ACL, op = d.String(), int(d.Int()), proto.OpenACL(), proto.OpCreate
	} else {
		c.Decode(&d, op)
		bytes = len(c.Data)
	}
	x := newTxn(Header{}, r)
	if d.Err() != nil || c.NullPath || !st.outgrown(createdBytes(c.Path, bytes, 0)) || st.checkSession(&x) != proto.OK {
		return false
	}
	as, scratch := createOp(op, &c), []byte(nil)
	_, code := st.checkCreate(&x, &as, bytes, &scratch)
	return code == proto.OK
}

// outgrown reports whether the state is full, or has no room for that many bytes although it weighs
// so little that it would not stay full: such requests would go through the log one after another.
func (st *state) outgrown(bytes int) bool {
	l, weight := st.limit, st.Weight()
	return l.Full || weight < l.Resumes() && weight+int64(bytes) > l.Weight
}

// multiMayGrow refuses a multi whose operations add bytes in sum.
func (t *Tree) multiMayGrow(x *txn) proto.ErrCode {
	if t.grown <= 0 || t.limit.Weight == 0 {
		return proto.OK
	}
	return t.mayWeigh(x, "", t.Weight())
}

// createdBytes is the weight of a new znode, or a little more.
func createdBytes(path string, dataBytes, aclBytes int) int {
	return len(path) + dataBytes + aclBytes + headCost + ZnodeCost
}

// mayWeigh refuses a change after which the state would weigh that much, more than before.
func (t *Tree) mayWeigh(x *txn, path string, weight int64) proto.ErrCode {
	l := t.limit
	switch {
	case l.Full:
		x.res.Full = true
		return proto.ErrQuotaExceeded
	case weight <= l.Weight:
		return proto.OK
	}
	l.Full, x.res.Full = true, true
	t.replaceLimit(l)
	return x.refuse(proto.ErrQuotaExceeded, path, "the state is full: it would weigh %d bytes, the limit is %d",
		weight, l.Weight)
}

// mayAddSession refuses a session if the state is full and the sessions take more than their
// reserve, whatever the rest weighs: a client that wants to delete needs a session.
func (t *Tree) mayAddSession(x *txn) proto.ErrCode {
	kept, sessions := max(t.limit.Weight/100*sessionPercent, sessionBytes), int64(len(t.sessions)+1)*sessionCost
	if t.limit.Weight == 0 || sessions <= kept || t.Weight()+sessionCost <= t.limit.Weight {
		return proto.OK
	}
	x.res.Full = true
	return x.refuse(proto.ErrQuotaExceeded, "",
		"the state is full, and %d sessions take %d bytes: %d are kept for them",
		len(t.sessions), sessions-sessionCost, kept)
}

// endFull ends Full if the state has shrunk. It is called after each request.
func (t *Tree) endFull() {
	if l := t.limit; l.Full && t.Weight() < l.Resumes() {
		l.Full = false
		t.replaceLimit(l)
	}
}
