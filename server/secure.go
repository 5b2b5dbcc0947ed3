package server

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net"
	"time"

	"github.com/gozkd/gozkd/internal/accept"
	"github.com/gozkd/gozkd/internal/fair"
	"github.com/gozkd/gozkd/internal/neterr"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/internal/link"
	"github.com/gozkd/gozkd/server/internal/meter"
)

// portKind is the kind of connections that a port for clients accepts.
type portKind uint8

const (
	portPlain portKind = iota
	portSecure
	portUnified // both
)

// Certificates are the server's certificates, as the program that embeds the server knows them.
type Certificates struct {
	// Reloads is how often changed files were taken over, Refused how often they could not be used.
	Reloads, Refused int64
	// Expires is when the first certificate of this server ends; zero if there is none.
	Expires time.Time
	// Warning names the certificates that end soon or have expired, and says what to do; "": none.
	Warning string
}

// ensureTLS sets zero fields for TLS to their defaults, and returns the errors in the others.
func (c *Config) ensureTLS() (errs []error) {
	c.HandshakeLimit = cmp.Or(c.HandshakeLimit, 250)
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
	var in link.Input
	n := newcomer{c, &in}
	if c.port == portPlain {
		n.countPlain()
		c.serve(in)
		return
	}
	if !n.secure() {
		in.Release()
		c.server.forget(c, true)
		return
	}
	// Stopped and awaited as this goroutine. The new goroutine starts with a small stack; a
	// handshake needs a large stack.
	c.server.life.Goroutines.Go(func() { c.serve(in) })
}

// secure decides whether the connection speaks TLS, and does the handshake. It returns false if the
// connection is to be closed. The input holds the bytes that the client has sent without TLS.
func (c newcomer) secure() bool {
	s, in := c.server, c.in
	deadline := time.Now().Add(s.live.Load().HandshakeTimeout)
	if c.NetConn().SetReadDeadline(deadline) != nil {
		return false // closed already
	}
	in.SetSmall(true)
	if !c.begins() {
		return false
	}
	if !accept.BeginsTLS(in.Bytes()) {
		if c.port == portUnified {
			c.countPlain()
			return true
		}
		var why error
		if speaks := accept.Protocol(in.Bytes()); speaks != "" {
			why = fmt.Errorf("the client speaks %s without TLS, and this port is for ZooKeeper's clients with TLS", speaks)
		}
		c.refused(neterr.NotTLS, why)
		return false
	}
	if c.stoodStill() && in.Ended(&c.Link) {
		return false
	}
	limit := s.live.Load().HandshakeLimit
	if out, full := s.strangers.handshakes.Enter(c.conn, fair.Host(c.NetConn().RemoteAddr()), cmp.Or(max(0, limit), math.MaxInt)); full {
		s.meter.Count(meter.HandshakesExceeded)
		out.logger().Warn("connection refused: too many TLS handshakes are under way", "limit", limit)
		if out == c.conn {
			return false
		}
		out.Close()
	}
	err := c.shakeHands(deadline)
	s.strangers.handshakes.Leave(c.conn)
	if err != nil && !c.IsClosed() {
		c.refused(neterr.TLSReason(err), err)
	}
	return err == nil
}

func (c newcomer) shakeHands(deadline time.Time) error {
	cfg := c.server.live.Load().TLS
	if cfg == nil {
		return errors.New("no TLS since the last Reload")
	}
	leaf, err := c.Secure(c.in, cfg, deadline)
	if err == nil {
		c.server.conns.secured(c.conn)
	}
	if err != nil || leaf == nil {
		return err
	}
	now := c.server.cfg.Now()
	c.Lock()
	defer c.Unlock()
	c.identifyCertificate(leaf, now)
	return nil
}

// refused counts and logs a failed handshake, unless the client gave up, or had no time left,
// because this process stood still.
func (c newcomer) refused(reason string, err error) {
	gaveUp := reason == neterr.TimedOut || reason == neterr.HungUp
	if gaveUp && c.stoodStill() {
		return
	}
	c.server.meter.Count(meter.HandshakesFailed)
	c.server.meter.Count(meter.AuthFailed)
	args := []any{"reason", reason}
	if err != nil && err.Error() != reason {
		args = append(args, "error", err)
	}
	c.logger().Warn("TLS handshake failed", args...)
	now := c.server.cfg.Now()
	c.Lock()
	defer c.Unlock()
	c.server.trail.Auth(c.conn, "TLS handshake: "+reason, proto.ErrAuthFailed, now)
}

func (c newcomer) countPlain() {
	if ip := net.ParseIP(c.addr); ip != nil && !ip.IsLoopback() {
		c.server.meter.Count(meter.PlainRemote)
	} else {
		c.server.meter.Count(meter.PlainLocal)
	}
}
