package faultproxy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gozkd/gozkd/proto"
)

// Kind is the kind of a fault.
type Kind uint8

const (
	// DropReply loses a reply: the server executes the request and replies; then the connection
	// breaks instead of delivering the reply. Everything that the server sent before is delivered.
	// The fault has happened when the reply is dropped.
	DropReply Kind = iota + 1
	// Delay holds back a request, and everything that the client sends after it on the connection.
	// The fault has happened when the request arrives at the gate.
	Delay
	// Fail answers a request with an error in its place among the replies; the server never sees
	// the request. The fault has happened when the error is sent.
	Fail
)

func (k Kind) String() string {
	switch k {
	case DropReply:
		return "drop reply"
	case Delay:
		return "delay"
	case Fail:
		return "fail"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// A Fault selects requests and decides their fate.
type Fault struct {
	Kind Kind
	Op   Op
	// PathPrefix selects requests by the path as the client sends it, including its chroot: the
	// znode itself, every znode below it, and sequential znodes of that name. "/q/item-" also
	// selects "/q/item-0000000007", but "/a" does not select "/ab". A prefix that ends with a slash
	// selects all znodes below. A multi is selected if any of its operations is. A request without
	// a path, or with several paths, such as setWatches, is selected only by the empty prefix,
	// which selects every request.
	PathPrefix string
	// Session selects the requests of a session; 0 selects those of all sessions. A connect request
	// belongs to the session that the client asks for. Other requests that a client sends before it
	// has the reply to its connect request belong to no session.
	Session int64
	Delay   time.Duration // Delay only, > 0
	Code    proto.ErrCode // Fail only, < 0
	// How often the fault happens; 0 means once, a negative number until the rule is removed.
	Times int
}

func (f *Fault) check() (meaning, error) {
	m, err := lookup(f.Op)
	errs := []error{err}
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf("faultproxy: "+format, args...))
		}
	}
	bad(f.Kind < DropReply || f.Kind > Fail, "unknown %v of a fault", f.Kind)
	bad(f.Kind == Fail && m.ofClient, "%v can't be made to fail: a client would take the error as the end of its connection or session", f.Op)
	bad(f.Kind == Fail && f.Code >= 0, "a request can't fail with code %d: errors are negative", int32(f.Code))
	bad(f.Kind != Fail && f.Code != 0, "code %d of a fault: only %v takes a code", int32(f.Code), Fail)
	bad(f.Kind == Delay && f.Delay <= 0, "a delay of %v", f.Delay)
	bad(f.Kind != Delay && f.Delay != 0, "delay %v of a fault: only %v takes a delay", f.Delay, Delay)
	bad(f.PathPrefix != "" && f.PathPrefix[0] != '/', "path prefix %q does not begin with a slash", f.PathPrefix)
	bad(f.PathPrefix != "" && m.pathless, "%v names no path: remove the path prefix %q", f.Op, f.PathPrefix)
	return m, errors.Join(errs...)
}

// String describes the fault, for example "drop reply of create at /a, session 0x1, once".
func (f Fault) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v of %s", f.Kind, string(f.Op))
	if f.PathPrefix != "" {
		fmt.Fprintf(&b, " at %s", f.PathPrefix)
	}
	switch f.Kind {
	case Fail:
		fmt.Fprintf(&b, " with %v", f.Code.String())
	case Delay:
		fmt.Fprintf(&b, " by %v", f.Delay)
	}
	if f.Session != 0 {
		fmt.Fprintf(&b, ", session %v", proto.SessionID(f.Session))
	}
	switch {
	case f.Times < 0:
		b.WriteString(", until removed")
	case f.Times <= 1:
		b.WriteString(", once")
	default:
		fmt.Fprintf(&b, ", %d times", f.Times)
	}
	return b.String()
}

// Op names requests by their purpose: all op codes of a group in proto's table of operations.
type Op string

// The requests that are no group. OpAny selects every request that a program makes. It excludes
// requests that client libraries send on their own: connect, auth, sasl, ping, setWatches and
// close.
const (
	OpAny     Op = "any"
	OpConnect Op = "connect" // the handshake, which creates or resumes a session
)

// meaning describes the requests that an Op selects.
type meaning struct {
	op       Op
	codes    []proto.OpCode
	ofClient bool // client libraries send it on their own: excluded from OpAny, and cannot fail
	pathless bool
}

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
	if r.header.Op != proto.OpMulti || !ofOneOp(code) {
		return nil
	}
	ops := r.multi()
	if len(ops) == 0 {
		return nil
	}
	failed := slices.IndexFunc(ops, func(op proto.MultiOp) bool { return prefix != "" && pathHasPrefix(op.Path, prefix) })
	results := proto.AppendFailedMulti(nil, len(ops), max(failed, 0), code)
	return (&proto.MultiResponse{Results: results}).Append(nil)
}

// ofOneOp reports whether a server gives the code to a single operation of a multi.
func ofOneOp(code proto.ErrCode) bool {
	return slices.Contains([]proto.ErrCode{
		proto.ErrNoNode, proto.ErrNoAuth, proto.ErrBadVersion, proto.ErrNoChildrenForEphemerals, proto.ErrNodeExists,
		proto.ErrNotEmpty, proto.ErrInvalidACL, proto.ErrBadArguments, proto.ErrEphemeralOnLocalSession, proto.ErrQuotaExceeded,
		proto.ErrUnimplemented,
	}, code)
}
