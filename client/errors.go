package client

import (
	"errors"
	"net"
	"strings"

	"github.com/gozkd/gozkd/proto"
)

// errBetterServer is why a read-only server is left.
var errBetterServer = errors.New("left for a server with a quorum")

// ErrClosed says that the Client was closed.
var ErrClosed = errors.New("client: closed")

// withoutAddress takes the address out of an error of package net, for who names it anyway. One that a name was resolved to
// stays.
func withoutAddress(err error, address string) error {
	var op *net.OpError
	if errors.As(err, &op) && op.Addr != nil && op.Addr.String() == address {
		return op.Err
	}
	return err
}

// Error is why a request failed. errors.Is finds both Code and Cause in it.
type Error struct {
	Op   string // ZooKeeper's name of the op
	Path string // as the caller named it; "" for an op without
	// Code is the server's answer, or what the client found: ErrConnectionLoss, ErrSessionExpired, ErrAuthFailed,
	// ErrBadArguments (nothing was sent), ErrMarshallingError (the reply makes no sense), ErrOperationTimeout (ctx ended).
	Code proto.ErrCode
	// Cause says more than the code, or is nil: the end of ctx, ErrClosed, what is wrong with the path, how the connection
	// was lost.
	Cause error
	// Unknown says that the request was a write, was sent, and was not answered: it may have been carried out, or be carried
	// out later, or never.
	Unknown bool
}

// Error names the op, the path and the reason.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("client: " + e.Op)
	if e.Path != "" {
		b.WriteString(" " + e.Path)
	}
	b.WriteString(": ")
	switch {
	case e.Cause == nil:
		b.WriteString(e.Code.String())
	case e.Code == proto.ErrOperationTimeout:
		b.WriteString(e.Cause.Error())
	default:
		b.WriteString(e.Code.String() + ": " + e.Cause.Error())
	}
	if e.Unknown {
		b.WriteString(" (whether it was carried out is unknown)")
	}
	return b.String()
}

// Unwrap returns the code, and the cause if there is one.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Code}
	}
	return []error{e.Code, e.Cause}
}
