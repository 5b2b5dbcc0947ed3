package faultproxy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/proto"
)

// Op names requests by their purpose: all op codes of a group in proto's table of operations.
type Op string

// The requests. OpAny selects every request that a program makes; it excludes requests that client
// libraries send on their own: connect, auth, sasl, ping, setWatches and close.
const (
	OpAny           Op = "any"
	OpConnect       Op = "connect" // the handshake, which creates or resumes a session
	OpAuth          Op = "auth"
	OpSASL          Op = "sasl"
	OpPing          Op = "ping"
	OpClose         Op = "close"    // the end of a session
	OpCreate        Op = "create"   // create, create2, createContainer, createTTL
	OpDelete        Op = "delete"   // delete, deleteContainer
	OpExists        Op = "exists"   //
	OpGet           Op = "get"      // getData
	OpSet           Op = "set"      // setData
	OpGetACL        Op = "getACL"   //
	OpSetACL        Op = "setACL"   //
	OpChildren      Op = "children" // getChildren, getChildren2
	OpSync          Op = "sync"
	OpMulti         Op = "multi" // multi, multiRead
	OpReconfig      Op = "reconfig"
	OpWatch         Op = "watch" // addWatch, checkWatches, removeWatches, setWatches, setWatches2
	OpEphemerals    Op = "ephemerals"
	OpChildrenCount Op = "childrenCount" // getAllChildrenNumber
	OpWhoAmI        Op = "whoAmI"
)

// meaning describes the requests that an Op selects.
type meaning struct {
	op       Op
	codes    []proto.OpCode
	ofClient bool // client libraries send it on their own: excluded from OpAny, and cannot fail
	pathless bool
}

// connect has no op code.
var connect = meaning{op: OpConnect, ofClient: true, pathless: true}

// lookup returns the meaning of op, derived from the groups of proto's table of operations. A group
// is ofClient if all its operations are automatic.
func lookup(op Op) (meaning, error) {
	if op == OpConnect {
		return connect, nil
	}
	m := meaning{op: op, ofClient: true, pathless: true}
	names := []string{string(OpAny), string(OpConnect)}
	for info := range proto.Ops() {
		if info.Group == "" {
			continue
		}
		if !slices.Contains(names, info.Group) {
			names = append(names, info.Group)
		}
		if op == Op(info.Group) || op == OpAny && !info.Automatic {
			m.codes = append(m.codes, info.Code)
			m.ofClient = m.ofClient && info.Automatic
			m.pathless = m.pathless && info.Path == proto.PathNone
		}
	}
	if m.codes == nil {
		return meaning{}, fmt.Errorf("faultproxy: there is no op %q; there are %s", string(op), strings.Join(names, ", "))
	}
	return m, nil
}

func (m meaning) covers(code proto.OpCode) bool { return slices.Contains(m.codes, code) }

// failedMulti returns the body of the reply to a multi that fails with code, or nil if the code
// belongs into the header of the reply.
//
// A server replies OK to a multi in which an operation failed, and the body has a result for each
// operation: the operations before the failed operation were rolled back, the failed operation has
// its code, and later operations were not tried. kazoo returns a list of results for such a body
// and raises an exception for an error in the header; go-zookeeper, Java and C report either as the
// error, Java and C with results only from a body. To show programs what a server would, the failed
// operation is the first that the prefix selects. A code that no single operation can have goes
// into the header, as does every error of a multiRead, whose other operations would have to be
// answered.
func failedMulti(r *request, prefix string, code proto.ErrCode) []byte {
	if r.header.Op != proto.OpMulti || r.bytes > maxMultiBytes || !ofOneOp(code) {
		return nil
	}
	ops := r.multi()
	if len(ops) == 0 {
		return nil
	}
	failed := 0
	for i := range ops {
		if prefix != "" && pathHasPrefix(ops[i].Path, prefix) {
			failed = i
			break
		}
	}
	results := make([]proto.MultiResult, len(ops))
	for i := range results {
		results[i] = proto.MultiResult{Op: proto.OpError, Err: proto.OK}
		switch {
		case i == failed:
			results[i].Err = code
		case i > failed:
			results[i].Err = proto.ErrRuntimeInconsistency
		}
	}
	return (&proto.MultiResponse{Results: results}).Append(nil)
}

// ofOneOp reports whether a server gives the code to a single operation of a multi.
func ofOneOp(code proto.ErrCode) bool {
	switch code {
	case proto.ErrNoNode, proto.ErrNoAuth, proto.ErrBadVersion, proto.ErrNoChildrenForEphemerals, proto.ErrNodeExists,
		proto.ErrNotEmpty, proto.ErrInvalidACL, proto.ErrBadArguments, proto.ErrEphemeralOnLocalSession, proto.ErrQuotaExceeded,
		proto.ErrUnimplemented:
		return true
	}
	return false
}
