package faultproxy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/proto"
)

// Op names requests of clients by what they are for: every op code of that meaning.
type Op string

// The requests. Any is every request that a program makes: all of these but what client libraries say on their own, which are
// connect, auth, sasl, ping, the setWatches among watch, and close.
const (
	OpAny           Op = "any"
	OpConnect       Op = "connect" // the handshake, of a new session and of one that is taken up again
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

// meaning is one Op.
type meaning struct {
	op       Op
	codes    []proto.OpCode
	own      bool // said by client libraries on their own: not part of any
	noFail   bool // a client takes its failure for the end of the connection or the session, or does not look at it
	pathless bool
}

// meanings is never changed.
var meanings = []meaning{
	{op: OpConnect, own: true, noFail: true, pathless: true}, // has no op code
	{op: OpAuth, codes: []proto.OpCode{proto.OpAuth}, own: true, noFail: true, pathless: true},
	{op: OpSASL, codes: []proto.OpCode{proto.OpSASL}, own: true, noFail: true, pathless: true},
	{op: OpPing, codes: []proto.OpCode{proto.OpPing}, own: true, noFail: true, pathless: true},
	{op: OpClose, codes: []proto.OpCode{proto.OpCloseSession}, own: true, noFail: true, pathless: true},
	{op: OpCreate, codes: []proto.OpCode{proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL}},
	{op: OpDelete, codes: []proto.OpCode{proto.OpDelete, proto.OpDeleteContainer}},
	{op: OpExists, codes: []proto.OpCode{proto.OpExists}},
	{op: OpGet, codes: []proto.OpCode{proto.OpGetData}},
	{op: OpSet, codes: []proto.OpCode{proto.OpSetData}},
	{op: OpGetACL, codes: []proto.OpCode{proto.OpGetACL}},
	{op: OpSetACL, codes: []proto.OpCode{proto.OpSetACL}},
	{op: OpChildren, codes: []proto.OpCode{proto.OpGetChildren, proto.OpGetChildren2}},
	{op: OpSync, codes: []proto.OpCode{proto.OpSync}},
	{op: OpMulti, codes: []proto.OpCode{proto.OpMulti, proto.OpMultiRead}},
	{op: OpReconfig, codes: []proto.OpCode{proto.OpReconfig}, pathless: true},
	{op: OpWatch, codes: []proto.OpCode{proto.OpAddWatch, proto.OpCheckWatches, proto.OpRemoveWatches, proto.OpSetWatches, proto.OpSetWatches2}},
	{op: OpEphemerals, codes: []proto.OpCode{proto.OpGetEphemerals}},
	{op: OpChildrenCount, codes: []proto.OpCode{proto.OpGetAllChildrenNumber}},
	{op: OpWhoAmI, codes: []proto.OpCode{proto.OpWhoAmI}, pathless: true},
}

// ParseOp returns the Op with that name. The error names all that there are.
func ParseOp(name string) (Op, error) {
	m, err := lookup(Op(name))
	return m.op, err
}

// lookup returns what op means; for any that is put together.
func lookup(op Op) (meaning, error) {
	names := []string{string(OpAny)}
	all := meaning{op: OpAny}
	for _, m := range meanings {
		if m.op == op {
			return m, nil
		}
		names = append(names, string(m.op))
		for _, code := range m.codes {
			if !m.own && code != proto.OpSetWatches && code != proto.OpSetWatches2 {
				all.codes = append(all.codes, code)
			}
		}
	}
	if op == OpAny {
		return all, nil
	}
	return meaning{}, fmt.Errorf("wirefault: there is no op %q; there are %s", string(op), strings.Join(names, ", "))
}

func (m meaning) covers(code proto.OpCode) bool { return slices.Contains(m.codes, code) }

// beginsWithPath reports whether the first field of the request's body is a path.
func beginsWithPath(code proto.OpCode) bool {
	switch code {
	case proto.OpReconfig, proto.OpSetWatches, proto.OpSetWatches2, proto.OpMulti, proto.OpMultiRead, proto.OpWhoAmI,
		proto.OpAuth, proto.OpSASL, proto.OpPing, proto.OpCloseSession:
		return false
	}
	return true
}
