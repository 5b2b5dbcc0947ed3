package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/gozkd/gozkd/internal/accept"
	"github.com/gozkd/gozkd/internal/neterr"
)

const (
	// maxHandshake bounds the bytes that are read from a caller before its handshake has succeeded.
	maxHandshake = 64 << 10
	// maxHandshakes bounds the handshakes that compute at a time, and maxHandshakesPerHost those of
	// a single host, so that strangers do not keep the processor from the members.
	maxHandshakes, maxHandshakesPerHost = 8, 2
)

// errFailedHandshake is wrapped by the error of an accepted connection whose handshake has failed.
var errFailedHandshake = errors.New("TLS handshake")

// secure tells TLS from plain connections by the first byte, if both are possible, and makes the
// handshake. It sets v.stream. On a plain connection that is not allowed, the error tells the
// caller what to do.
func (n *Network) secure(ctx context.Context, v *visitor) error {
	v.enc = n.encryption.Load()
	if v.stream = v.conn; v.enc.Mode == TLSOff {
		return nil
	}
	detected := time.Now().Add(v.enc.DetectionTimeout)
	if v.until.Before(detected) {
		detected = v.until
	}
	if err := v.conn.SetReadDeadline(detected); err != nil {
		return err
	}
	begun, err := accept.Begin(v.conn)
	if err != nil {
		return err
	}
	if err := v.conn.SetDeadline(v.until); err != nil {
		return err
	}
	switch {
	case begun.BeginsTLS(): // a plain connection begins with magic
		return n.handshakeAsCalled(ctx, v, &callerConn{Conn: begun})
	case v.enc.Mode == TLSRequired:
		return refuse(RefusedPlain, "member %d accepts only TLS connections of other members: set sslQuorum=true on the calling member", n.cfg.Self)
	}
	v.stream = begun
	return nil
}

func (n *Network) handshakeAsCalled(ctx context.Context, v *visitor, c *callerConn) error {
	c.left = maxHandshake
	c.turn = func() (func(), bool) {
		wait, stop := context.WithDeadline(ctx, v.until)
		defer stop()
		return n.handshakes.Await(wait, v.host)
	}
	s := &secureConn{tls.Server(c, withoutTickets(v.enc.Server)), v.conn}
	err := s.HandshakeContext(ctx)
	c.pass()
	c.done = true
	switch {
	case ctx.Err() != nil:
		return net.ErrClosed
	case err != nil:
		return &rejectedError{reason: RefusedTLS, err: fmt.Errorf("%w: %s: %w", errFailedHandshake, neterr.TLSReason(err), err)}
	}
	v.stream = s
	return nil
}

// withoutTickets returns a configuration without session tickets: a resumed session would skip the
// verification of the caller's certificate. Members connect too seldom to need them.
func withoutTickets(cfg *tls.Config) *tls.Config {
	cfg = cfg.Clone()
	cfg.SessionTicketsDisabled = true
	if choose := cfg.GetConfigForClient; choose != nil {
		cfg.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			chosen, err := choose(hello)
			if err != nil || chosen == nil {
				return nil, err
			}
			chosen = chosen.Clone()
			chosen.SessionTicketsDisabled = true
			return chosen, nil
		}
	}
	return cfg
}

// callerConn is an accepted connection with TLS. During the handshake it bounds what the caller
// costs: the bytes read, and, by turns between reads and writes, the computations at a time.
type callerConn struct {
	net.Conn
	done bool // the handshake is over

	// For the handshake, which uses a single goroutine.
	left int                          // bytes that may be read
	turn func() (end func(), ok bool) // waits for a turn
	end  func()                       // ends the present turn; nil: there is none
}

func (c *callerConn) Read(b []byte) (n int, err error) {
	c.pass()
	n, err = c.Conn.Read(b)
	if c.done || err != nil {
		return n, err
	}
	if c.left -= n; c.left < 0 {
		return 0, fmt.Errorf("%w: a handshake of more than %d bytes", ErrCorrupt, maxHandshake)
	}
	return n, c.take()
}

func (c *callerConn) Write(b []byte) (n int, err error) {
	c.pass()
	n, err = c.Conn.Write(b)
	if c.done || err != nil {
		return n, err
	}
	return n, c.take()
}

// take waits for a turn to compute.
func (c *callerConn) take() error {
	end, ok := c.turn()
	if !ok {
		return ErrSilent
	}
	c.end = end
	return nil
}

func (c *callerConn) pass() {
	if c.end != nil {
		c.end()
		c.end = nil
	}
}

// handshakeError returns the error of a dialed connection with TLS. If another attempt soon would
// fail as well, it is a rejection.
func handshakeError(err error, to uint64) error {
	var plain tls.RecordHeaderError
	var op *net.OpError
	var network net.Error
	switch {
	case errors.As(err, &plain) && string(plain.RecordHeader[:]) == magic[:len(plain.RecordHeader)]:
		return refuse(RefusedTLS, "member %d accepts no TLS connections of other members: set portUnification=true, or sslQuorum=true, on member %d first", to, to)
	case errors.As(err, &op) && op.Op == "remote error":
		return refuse(RefusedTLS, "member %d refuses the TLS handshake (%w): its log says why", to, op.Err)
	case errors.As(err, &network), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.ErrClosedPipe), errors.Is(err, context.Canceled):
		return fmt.Errorf("peer: TLS handshake: %w", silence(err))
	}
	return refuse(RefusedTLS, "TLS handshake with member %d: %s: %w", to, neterr.TLSReason(err), err)
}

// alerted is handshakeError for an error after the handshake: with TLS 1.3, the other side verifies
// this side's certificate only then.
func alerted(err error, to uint64) error {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "remote error" {
		return handshakeError(err, to)
	}
	return err
}
