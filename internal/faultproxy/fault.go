package faultproxy

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gozkd/gozkd/proto"
)

// Kind is what goes wrong.
type Kind uint8

const (
	// DropReply loses an answer: the server gets the request and answers it; then the connection breaks in place of the answer.
	// What the server sent before it arrives. It happened when the answer was dropped.
	DropReply Kind = iota + 1
	// Delay lets a request, and all that the client sends behind it on the same connection, come late. It happened when the
	// request came to the gate.
	Delay
	// Fail answers a request with an error that the server knows nothing of, in its place among the answers; the server never
	// sees the request. It happened when the answer is sent.
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

// A Fault says which requests meet with what.
type Fault struct {
	Kind Kind
	Op   Op
	// PathPrefix selects requests by the path as the client sends it, with its chroot: this znode, all below it, and the
	// sequential znodes with this name, so that "/q/item-" is also "/q/item-0000000007", and "/a" is not "/ab". A prefix that
	// ends with a slash is all below. A multi is selected by any of its ops. Requests that name no path, or several as
	// setWatches does, have the empty prefix alone, which selects all.
	PathPrefix string
	// Session selects the requests of one session, 0 those of all. The session of a connect is the one that the client asks
	// for; requests that a client sends before it got the answer to its connect belong to none.
	Session int64
	Delay   time.Duration // Delay only, > 0
	Code    proto.ErrCode // Fail only, < 0
	Times   int           // how often it happens; 0 is once, negative until the rule is removed
}

// check returns what Op means, or all that is wrong.
func (f *Fault) check() (meaning, error) {
	m, err := lookup(f.Op)
	errs := []error{err}
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf("faultproxy: "+format, args...))
		}
	}
	bad(f.Kind < DropReply || f.Kind > Fail, "unknown %v of a fault", f.Kind)
	bad(f.Kind == Fail && m.ofClient, "%v can't be made to fail: clients take that for the end of more than this request", f.Op)
	bad(f.Kind == Fail && f.Code >= 0, "a request can't fail with code %d: errors are negative", int32(f.Code))
	bad(f.Kind != Fail && f.Code != 0, "code %d of a fault that is not %v", int32(f.Code), Fail)
	bad(f.Kind == Delay && f.Delay <= 0, "a delay of %v", f.Delay)
	bad(f.Kind != Delay && f.Delay != 0, "delay %v of a fault that is not %v", f.Delay, Delay)
	bad(f.PathPrefix != "" && f.PathPrefix[0] != '/', "path prefix %q does not begin with a slash", f.PathPrefix)
	bad(f.PathPrefix != "" && m.pathless, "%v names no path that could begin with %q", f.Op, f.PathPrefix)
	return m, errors.Join(errs...)
}

// String describes the fault in words, such as "drop reply of create at /a, session 0x1, once".
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
