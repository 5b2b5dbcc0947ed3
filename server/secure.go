package server

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"time"

	"github.com/gozkd/gozkd/internal/fair"
	"github.com/gozkd/gozkd/internal/tlsreason"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/internal/meter"
)

// portKind is what a port for clients accepts.
type portKind uint8

const (
	portPlain portKind = iota
	portSecure
	portUnified // both
)

// ensureTLS sets the fields for TLS that are zero to their defaults, and returns the errors in the
// others.
func (c *Config) ensureTLS() (errs []error) {
	setDefault(&c.HandshakeLimit, 250)
	if c.SecureListen != "" && c.SecureListener != nil {
		errs = append(errs, errors.New("server: SecureListen is set, and so is SecureListener: choose one"))
	}
	switch {
	case c.SecureListen == "" && c.SecureListener == nil && !c.PortUnification:
	case c.TLS == nil:
		errs = append(errs, errors.New("server: SecureListen, SecureListener and PortUnification need TLS, and TLS is not set"))
	case len(c.TLS.Certificates) == 0 && c.TLS.GetCertificate == nil && c.TLS.GetConfigForClient == nil:
		errs = append(errs, errors.New("server: TLS has no certificate: set Certificates, GetCertificate or GetConfigForClient"))
	}
	return errs
}

// open begins to serve the connection, with a TLS handshake if the port demands it.
func (c *conn) open() {
	var in input
	if c.port == portPlain {
		c.countPlain()
		c.serve(in)
		return
	}
	if !c.secure(&in) {
		in.release()
		c.server.forget(c, true)
		return
	}
	// Stopped and awaited as this goroutine. The new goroutine starts with a small stack; a
	// handshake needs a large stack.
	c.server.life.goroutines.Go(func() { c.serve(in) })
}

// secure decides whether the connection speaks TLS, and does the handshake. It returns false if the
// connection is to be closed. in holds what the client has sent without TLS.
func (c *conn) secure(in *input) bool {
	s := c.server
	deadline := time.Now().Add(s.live.Load().HandshakeTimeout)
	if c.nc.SetReadDeadline(deadline) != nil {
		return false // closed already
	}
	in.small = true
	for in.w-in.r < 4 {
		if err := in.fill(c); err != nil {
			c.noteUnattached(err)
			return false
		}
	}
	if in.buf[in.r] != 0x16 || in.buf[in.r+1] != 3 { // no handshake record of SSL 3 or TLS
		if c.port == portUnified {
			c.countPlain()
			return true
		}
		var why error
		if speaks := tlsreason.Protocol(in.buf[in.r:in.w]); speaks != "" {
			why = fmt.Errorf("the client speaks %s without TLS, and this port is for ZooKeeper's clients with TLS", speaks)
		}
		c.refused(tlsreason.NotTLS, why)
		return false
	}
	limit := s.live.Load().HandshakeLimit
	if out, full := s.port.handshakes.Enter(c, fair.Host(c.nc.RemoteAddr()), cmp.Or(max(0, limit), math.MaxInt)); full {
		out.exceeds(limit)
		if out == c {
			return false
		}
		out.close()
	}
	err := c.shakeHands(in, deadline)
	s.port.handshakes.Leave(c)
	if err != nil && !c.isClosed() {
		c.refused(tlsreason.Of(err), err)
	}
	return err == nil
}

// shakeHands does a TLS handshake, which in begins.
func (c *conn) shakeHands(in *input, deadline time.Time) error {
	cfg := c.server.live.Load().TLS
	if cfg == nil {
		return errors.New("no TLS since the last Reload")
	}
	if err := c.nc.SetDeadline(deadline); err != nil {
		return err
	}
	t := &tlsLayer{}
	t.wire.Conn, t.wire.c, t.wire.in = c.nc, c, *in
	*in = input{small: true}
	t.conn = tls.Server(&t.wire, cfg)
	err := t.conn.Handshake()
	if err == nil {
		err = c.nc.SetDeadline(time.Time{})
	}
	if err != nil {
		t.wire.in.release()
		return err
	}
	t.wire.raw, t.wire.received, t.wire.in.small = c.raw, -1, false
	c.holdInput(0, false)
	state := t.conn.ConnectionState()
	if len(state.VerifiedChains) > 0 {
		t.leaf = state.VerifiedChains[0][0]
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tls = t
	if t.leaf != nil {
		c.identifyCertificate()
	}
	return nil
}

// exceeds counts and logs a connection that is closed because too many handshakes are under way.
func (c *conn) exceeds(limit int) {
	c.server.meter.Count(meter.HandshakesExceeded)
	c.logger().Warn("connection refused: too many TLS handshakes are under way", "limit", limit)
}

// refused counts and logs a failed handshake.
func (c *conn) refused(reason string, err error) {
	c.server.meter.Count(meter.HandshakesFailed)
	c.server.meter.Count(meter.AuthFailed)
	args := []any{"reason", reason}
	if err != nil && err.Error() != reason {
		args = append(args, "error", err)
	}
	c.logger().Warn("TLS handshake failed", args...)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.auditAuth("TLS handshake: "+reason, proto.ErrAuthFailed)
}

// countPlain counts a connection without TLS.
func (c *conn) countPlain() {
	if ip := net.ParseIP(c.addr); ip != nil && !ip.IsLoopback() {
		c.server.meter.Count(meter.PlainRemote)
	} else {
		c.server.meter.Count(meter.PlainLocal)
	}
}

// identifyCertificate adds the identities that the verified certificate proves. c.mu is held.
func (c *conn) identifyCertificate() {
	ids, err := c.server.IdentifyCertificate(c.tls.leaf)
	if err == nil && !c.addIDs(ids...) {
		err = fmt.Errorf("the identity is longer than %d bytes", maxIDBytes)
	}
	if err != nil {
		c.server.meter.Count(meter.AuthFailed)
		c.logger().Warn("the client has no identity x509", "subject", c.tls.leaf.Subject.String(), "error", err)
		c.tls.leaf = nil
		c.auditAuth(schemeX509, proto.ErrAuthFailed)
		return
	}
	c.auditAuth(schemeX509, proto.OK)
}
