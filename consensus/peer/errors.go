package peer

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/internal/neterr"
)

var (
	// ErrClosed is returned by a closed network.
	ErrClosed = errors.New("peer: closed")
	// ErrUnknownPeer is returned by SendCheckpoint for a member that is not in the set of SetPeers.
	ErrUnknownPeer = errors.New("peer: not a peer")
	// ErrMoved is returned by SendCheckpoint if the peer is removed or dropped meanwhile.
	ErrMoved = errors.New("peer: the peer has left, or its connections were dropped")
	// ErrCorrupt is wrapped by errors about bytes that no member of this version sends.
	ErrCorrupt = errors.New("peer: damaged bytes")
	// ErrSilent is wrapped by the error of a connection on which nothing arrived for 5 s.
	ErrSilent = errors.New("peer: nothing received for 5 s")

	errUnanswered = errors.New("not answered in time")

	errReplaced = errors.New("peer: the other side has made a new connection")
	errDropped  = errors.New("peer: the connection is made again with a new hello")
)

// RefusedError is returned if the other side refused a hello, a frame or a checkpoint.
type RefusedError struct {
	Peer   uint64 // member that refused
	Reason string // text that it sent
}

// Error returns the peer and its reason.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("peer: member %d refuses: %s", memberid.Number(e.Peer), e.Reason)
}

type rejectedError struct {
	reason Refusal
	err    error
	told   string // what is sent to the other side; empty: the text of err
}

func (e *rejectedError) Error() string {
	switch e.reason {
	case RefusedPlain, RefusedTLS, RefusedCertificate:
		return "peer: " + e.err.Error()
	}
	return "peer: hello not accepted: " + e.err.Error()
}
func (e *rejectedError) Unwrap() error { return e.err }

// isRejection reports whether one side has rejected the other. Another attempt soon won't help.
func isRejection(err error) bool {
	return errors.As(err, new(*RefusedError)) || errors.As(err, new(*rejectedError))
}

// connectionRefused reports whether the host refused a dial: it runs, but nothing listens there.
func connectionRefused(err error) bool {
	return neterr.Is(err, syscall.ECONNREFUSED)
}

// logKey returns a text that is equal for errors that need to be logged only once. Local ports and
// times are left out, because they change with each attempt.
func logKey(err error) string {
	var refused *RefusedError
	var rejected *rejectedError
	var dns *net.DNSError
	var invalid x509.CertificateInvalidError
	var op *net.OpError
	switch {
	case errors.As(err, &refused):
		return refused.Error()
	case errors.As(err, &rejected):
		return rejected.Error()
	case errors.As(err, &dns):
		return "lookup " + dns.Name
	case errors.As(err, &invalid): // whose text has the time of the attempt
		invalid.Detail = ""
		return invalid.Error()
	case errors.As(err, &op):
		return op.Op + ": " + op.Err.Error()
	}
	if errors.Is(err, ErrCorrupt) {
		return ErrCorrupt.Error() // the text may hold arbitrary bytes from the network
	}
	return err.Error()
}

// reasonText shortens and cleans a reason for the network and the log.
func reasonText(s string) string {
	if len(s) > maxReason {
		s = s[:maxReason]
	}
	return strings.ToValidUTF8(s, "?")
}
