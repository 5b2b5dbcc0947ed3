package kill

import (
	"fmt"
	"strings"

	"github.com/gozkd/gozkd/proto"
)

// kind is what an op does.
type kind int

const (
	setOwn    kind = iota // setData of the worker's own register, with the version that must be there
	move                  // multi: from one of the worker's two accounts to the other, with both versions
	seq                   // create a sequential znode below /seq
	hold                  // create an ephemeral
	drop                  // delete a znode that seq or hold has created
	setShared             // setData of a register that all workers set, with any version
	failing               // multi: a create below /never, and a check that fails
	read                  // getData of the worker's own register, after its writes
)

// fate is the known outcome of an op.
type fate int

const (
	unanswered fate = iota
	applied         // acknowledged, or found
	absent          // not carried out, and never will be
)

// An op is one request of a worker. Its id is also the value that it writes.
type op struct {
	kind
	fate
	conn        int // counts the worker's connections
	id          string
	path        string
	version     int32  // setOwn, move: after the op. read: the one that must be there
	balance     int    // move: of the first account, after the op
	want        string // read: the data that must be there
	target      *op    // drop
	zxid, floor proto.Zxid
}

// total is what the two accounts of a worker hold together.
const total = 1000

// encode returns the request.
func (o *op) encode() (proto.OpCode, []byte) {
	switch o.kind {
	case setOwn:
		return proto.OpSetData, setBody(o.path, o.id, o.version-1)
	case move:
		return proto.OpMulti, (&proto.MultiRequest{Ops: []proto.MultiOp{
			{Op: proto.OpSetData, Path: o.path + "a", Data: []byte(account(o.id, o.balance)), Version: o.version - 1},
			{Op: proto.OpSetData, Path: o.path + "b", Data: []byte(account(o.id, total-o.balance)), Version: o.version - 1},
		}}).Append(nil)
	case seq:
		return proto.OpCreate, createBody("/seq/n-", o.id, proto.ModePersistentSequential)
	case hold:
		return proto.OpCreate, createBody(o.path, o.id, proto.ModeEphemeral)
	case drop:
		return proto.OpDelete, (&proto.PathVersionRequest{Path: o.path, Version: -1}).Append(nil)
	case setShared:
		return proto.OpSetData, setBody(o.path, o.id, -1)
	case failing:
		return proto.OpMulti, (&proto.MultiRequest{Ops: []proto.MultiOp{
			{Op: proto.OpCreate, Path: o.path, Data: []byte(o.id), ACL: proto.OpenACL()},
			{Op: proto.OpCheck, Path: "/never", Version: 1 << 20},
		}}).Append(nil)
	case read:
		return proto.OpGetData, (&proto.PathWatchRequest{Path: o.path}).Append(nil)
	}
	panic(fmt.Sprintf("kill: no such kind of op: %d", o.kind))
}

// settle processes the answer to an op and returns an error text, or "". It also returns the
// version that a setShared made.
func (o *op) settle(r *reply) (version int32, fault string) {
	if o.kind != failing && r.Err != proto.OK {
		if o.kind == drop && r.Err == proto.ErrNoNode {
			return 0, "lost: nothing was there to delete"
		}
		return 0, "answer: " + r.Err.String()
	}
	o.fate, o.zxid = applied, r.Zxid
	switch o.kind {
	case setOwn, setShared:
		var st proto.Stat
		st.Decode(&r.body)
		version = st.Version
		if o.kind == setOwn && version != o.version {
			fault = fmt.Sprintf("answer: version %d, want %d", version, o.version)
		}
	case move:
		var m proto.MultiResponse
		if err := m.Decode(&r.body); err != nil {
			return 0, "answer: " + err.Error()
		}
		if len(m.Results) != 2 || m.Results[0].Op != proto.OpSetData || m.Results[1].Stat.Version != o.version {
			fault = fmt.Sprintf("answer: %+v, want two sets that make version %d", m.Results, o.version)
		}
	case seq, hold:
		var c proto.CreateResponse
		c.Decode(&r.body, proto.OpCreate)
		if o.kind == hold && c.Path != o.path || o.kind == seq && !strings.HasPrefix(c.Path, "/seq/n-") {
			fault = "answer: created " + c.Path
		}
		o.path = c.Path
	case failing:
		o.fate = absent
		if r.Err == proto.OK {
			var m proto.MultiResponse
			if err := m.Decode(&r.body); err != nil {
				return 0, "answer: " + err.Error()
			}
			if len(m.Results) != 2 || m.Results[0].Op != proto.OpError {
				fault = fmt.Sprintf("answer: %+v, want two errors", m.Results)
			}
		}
	case read:
		var d proto.DataResponse
		d.Decode(&r.body)
		if string(d.Data) != o.want || d.Stat.Version != o.version {
			fault = fmt.Sprintf("order: read %q, version %d; the connection's own write before it was %q, version %d", d.Data, d.Stat.Version, o.want, o.version)
		}
	}
	if fault == "" && r.body.Err() != nil {
		fault = "answer: " + r.body.Err().Error()
	}
	return version, fault
}

// visible reports whether a later read can show that the op was carried out.
func (o *op) visible() bool { return o.kind <= drop }

// account is the data of an account: the last writer and the balance.
func account(id string, balance int) string { return fmt.Sprintf("%s %d", id, balance) }
