package peer

import (
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"syscall"
)

var (
	// ErrClosed is returned by a network that was closed.
	ErrClosed = errors.New("peer: closed")
	// ErrUnknownPeer is returned by SendCheckpoint for a member that SetPeers did not name, or no longer names.
	ErrUnknownPeer = errors.New("peer: not a peer")
	// ErrMoved is returned by SendCheckpoint when SetPeers drops the peer or changes its address meanwhile.
	ErrMoved = errors.New("peer: the peer has left, or has another address")
	// ErrCorrupt is wrapped by errors about bytes that no member of this version writes.
	ErrCorrupt = errors.New("peer: damaged bytes")
	// ErrSilent is wrapped by the error that ends a connection on which nothing was heard for 5 s.
	ErrSilent = errors.New("peer: nothing heard for 5 s")

	errReplaced = errors.New("peer: the other side has made a new connection")
	errDropped  = errors.New("peer: hello is to be said again")
)

// RefusedError says that the other side refused a hello, a frame or a checkpoint, and why.
type RefusedError struct {
	Peer   uint64 // who refused
	Reason string // in its words
}

// Error names the peer and its reason.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("peer: member %d refuses: %s", e.Peer, e.Reason)
}

// rejectedError says that we do not want the other side. Its text, without a prefix, is what the other is told.
type rejectedError struct{ err error }

func (e *rejectedError) Error() string { return "peer: hello not accepted: " + e.err.Error() }
func (e *rejectedError) Unwrap() error { return e.err }

// byReason reports whether one of the two sides does not want the other. Trying again soon won't help.
func byReason(err error) bool {
	var refused *RefusedError
	var rejected *rejectedError
	return errors.As(err, &refused) || errors.As(err, &rejected)
}

// nobodyThere reports whether a dial was refused by the host: it runs, but nothing listens on the port.
func nobodyThere(err error) bool {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return false
	}
	const wsaeconnrefused = 10061 // Windows' own number; its syscall.ECONNREFUSED is an invented one
	return errno == syscall.ECONNREFUSED || runtime.GOOS == "windows" && errno == wsaeconnrefused
}

// kindOf returns a text that is the same for errors that a reader of the log need not see twice. Ports of our own, which
// change with each try, are not in it.
func kindOf(err error) string {
	var refused *RefusedError
	var rejected *rejectedError
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.As(err, &refused):
		return refused.Error()
	case errors.As(err, &rejected):
		return rejected.Error()
	case errors.As(err, &dns):
		return "lookup " + dns.Name
	case errors.As(err, &op):
		return op.Op + ": " + op.Err.Error()
	}
	if errors.Is(err, ErrCorrupt) {
		return ErrCorrupt.Error() // the text may hold bytes of a stranger's choice
	}
	return err.Error()
}

// reasonText makes a reason fit for the wire and for a log line.
func reasonText(s string) string {
	if len(s) > maxReason {
		s = s[:maxReason]
	}
	return strings.ToValidUTF8(s, "?")
}
