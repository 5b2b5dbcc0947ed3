package client

import (
	"errors"
	"fmt"
	"net"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/facts"
)

var errBetterServer = leftError{errors.New("left for a server with a quorum")}
var errLeft = leftError{errors.New("left for another server")}

// leftError says why the Client closed a connection.
type leftError struct{ error }

func (leftError) Is(target error) bool { return target == net.ErrClosed }

// ErrClosed means that Close was called.
var ErrClosed = errors.New("client: closed")

// ExpiredError is a proto.ErrSessionExpired that a gozkd server explains, as far as the servers in
// Tellers know why the session ended.
type ExpiredError struct{ facts.EndedSession }

// Error returns the text of proto.ErrSessionExpired and the story, in a sentence.
func (e *ExpiredError) Error() string { return proto.ErrSessionExpired.Error() + ": " + e.Story }

// Unwrap returns proto.ErrSessionExpired.
func (e *ExpiredError) Unwrap() error { return proto.ErrSessionExpired }

// ErrSASL means that the SASL exchange of Config.SASL failed. If the server refused the
// credentials, which ends the Client, the error also wraps proto.ErrAuthFailed. After another
// failure, such as a server without SASL or a Kerberos server out of reach, the Client tries the
// next server.
var ErrSASL = errors.New("SASL authentication failed")

// ErrTooLarge matches each TooLargeError.
var ErrTooLarge = errors.New("too large")

// TooLargeError is the Cause of the error of a request that is larger than Config.MaxRequest, which
// was not sent, or of a reply that is larger than Config.MaxBuffer, which was not read.
type TooLargeError struct {
	Size, Limit int // in bytes
	Reply       bool
}

func (e *TooLargeError) Error() string {
	what := map[bool]string{false: "request", true: "reply"}[e.Reply]
	return fmt.Sprintf("the %s of %d bytes is too large: the limit is %d", what, e.Size, e.Limit)
}

// Is reports whether target is ErrTooLarge.
func (e *TooLargeError) Is(target error) bool { return target == ErrTooLarge }

// errDemandsIdentity is the end of a Client without an identity that the server demands.
var errDemandsIdentity = fmt.Errorf("client: %w: %w: the server demands an identity that this client has not given, "+
	"such as a client certificate or SASL (its zoo.cfg lists the schemes in enforce.auth.schemes)", proto.ErrAuthFailed, proto.ErrSessionClosedRequireSASLAuth)

// withoutAddress removes the address from an error of package net whose caller names the address
// too. An address that a host name was resolved to stays.
func withoutAddress(err error, address string) error {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Addr != nil && op.Addr.String() == address {
		return op.Err
	}
	return err
}

// Error is the error of a request. errors.Is finds both Code and Cause in it.
type Error struct {
	Op   string // ZooKeeper's name of the op
	Path string // as the caller gave it; "" if the operation has none
	// Code is the server's reply, or what the client found: ErrConnectionLoss, ErrSessionExpired,
	// ErrAuthFailed, ErrBadArguments (nothing was sent), ErrMarshallingError (the reply cannot be
	// decoded), ErrOperationTimeout (ctx ended).
	Code proto.ErrCode
	// Cause explains the code, or is nil: the error of ctx, ErrClosed, an invalid path, how the
	// connection was lost.
	Cause error
	// Unknown is set for a write that was sent and not answered. The server may have executed the
	// write, may execute it later, or never.
	Unknown bool
}

// Error names the operation, the path and the reason.
func (e *Error) Error() string {
	what, why := e.Op, e.Code.String()
	if e.Path != "" {
		what += fmt.Sprintf(" %.1024s", e.Path)
	}
	switch {
	case e.Cause == nil:
	case e.Code == proto.ErrOperationTimeout:
		why = e.Cause.Error()
	default:
		why += ": " + e.Cause.Error()
	}
	if e.Unknown {
		why += " (whether it was carried out is unknown)"
	}
	return "client: " + what + ": " + why
}

// Unwrap returns the code, and the cause, if any.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Code}
	}
	return []error{e.Code, e.Cause}
}
