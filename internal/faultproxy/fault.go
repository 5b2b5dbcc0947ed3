package faultproxy

import (
	"errors"
	"fmt"
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

// A Fault selects requests and says what happens to them.
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

// check returns the meaning of Op, or all errors of the fault.
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
