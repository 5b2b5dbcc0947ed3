package server

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"

	"github.com/gozkd/gozkd/audit"
	"github.com/gozkd/gozkd/internal/memnet"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/sasl"
	"github.com/gozkd/gozkd/server/internal/meter"
)

// Caller is a client whose identity the embedding program has established, for example by HTTP.
type Caller struct {
	// Address is the client's host, without a port: its identity of the scheme ip. Empty: this
	// machine.
	Address string
	// IDs are identities besides that. Those of Identify and IdentifyCertificate have what the
	// server gives to clients that prove the same by the protocol.
	IDs []proto.ID
	// Origin says in the audit log how the client came, for example "http".
	Origin string
	// TLS: the client's connection to the program is encrypted.
	TLS bool
}

// callerConn is the server's end of a connection of DialAs.
type callerConn struct {
	net.Conn
	Caller
}

// DialAs is Dial for a client with other identities. The server trusts the program: it takes the
// identities without a proof. Config.MaxClientConns neither bounds nor counts these connections, so
// the program must bound them.
func (s *Server) DialAs(ctx context.Context, caller Caller) (net.Conn, error) {
	host, _, _ := net.SplitHostPort(inProcessAddress) // it is valid
	if caller.Address != "" {
		host = caller.Address
	}
	client, ours := memnet.Pipe(net.JoinHostPort(host, "0"), inProcessAddress)
	if err := s.dialable(ctx); err != nil {
		return nil, err
	}
	s.admit(&callerConn{ours, caller}, portPlain)
	return client, nil
}

// dialable returns why no connection within the process can be made, or nil.
func (s *Server) dialable(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case !s.life.Accepting.Load():
		return &net.OpError{Op: "dial", Net: "memory", Err: s.life.WhyNot()}
	}
	return nil
}

// errNoSASLPassword is for servers without DIGEST-MD5.
var errNoSASLPassword = fmt.Errorf("%w: no SASL users with passwords are configured", ErrNotAuthenticated)

// Identify returns the identities that a name and a password prove: with the scheme digest, as a
// client's addauth; with sasl, as DIGEST-MD5. NB: every name and password is an identity of the
// scheme digest. The error wraps ErrNotAuthenticated.
func (s *Server) Identify(scheme, user, password string) ([]proto.ID, error) {
	if scheme == schemeDigest {
		return s.identify(scheme, user+":"+password, "")
	}
	auth := s.live.Load().Auth.SASL
	if scheme != schemeSASL || auth == nil {
		s.meter.Count(meter.AuthFailed)
		return nil, errNoSASLPassword
	}
	id, err := provePassword(auth, user, password)
	if err != nil {
		s.meter.Count(meter.AuthFailed)
		return nil, fmt.Errorf("%w: %w", ErrNotAuthenticated, err)
	}
	return s.saslIDs(id), nil
}

// provePassword plays both sides of an exchange of DIGEST-MD5.
func provePassword(mechanism sasl.Server, user, password string) (id string, err error) {
	client, err := sasl.NewDigestClient(user, password).New("")
	if err != nil {
		return "", err
	}
	server := mechanism.New()
	var token []byte
	for range maxSASLTokens {
		reply, clientDone, err := client.Step(token)
		if err != nil || reply == nil {
			return "", errors.Join(err, sasl.ErrRefused)
		}
		var done bool
		if token, id, done, err = server.Step(reply); err != nil {
			return "", err
		}
		if done {
			return id, nil
		}
		if clientDone {
			break
		}
	}
	return "", sasl.ErrRefused
}

// IdentifySASL returns the identities of a client that something else than this server has found to
// be the SASL user id, for example a proxy that the program trusts.
func (s *Server) IdentifySASL(id string) []proto.ID { return s.saslIDs(id) }

// IdentifyCertificate returns the identities that a verified certificate proves.
func (s *Server) IdentifyCertificate(cert *x509.Certificate) ([]proto.ID, error) {
	x := &s.live.Load().Auth.X509
	name := x.ID
	if name == nil {
		name = CertificateID
	}
	id, err := name(cert)
	if err == nil && id == "" {
		err = errors.New("the identity is empty")
	}
	if err != nil {
		return nil, err
	}
	var ids []proto.ID
	if x.SuperUser != "" && id == x.SuperUser {
		ids = append(ids, proto.ID{Scheme: superID.Scheme, ID: id})
	}
	return append(ids, proto.ID{Scheme: schemeX509, ID: id}), nil
}

// Audit puts an event into the audit log, if there is one: for what callers do through the program
// that embeds the server. Time is set if it is zero.
func (s *Server) Audit(e audit.Event) {
	if s.cfg.Audit == nil {
		return
	}
	if e.Time.IsZero() {
		e.Time = s.cfg.Now()
	}
	e.IDs = ShownIDs(e.IDs)
	s.cfg.Audit.Record(&e)
}

// MaxBuffer returns how many bytes a request may have: Config.MaxBuffer.
func (s *Server) MaxBuffer() int { return int(s.cfg.MaxBuffer) }

// HasSuper reports whether there is a superuser with a password (Config.SuperDigest).
func (s *Server) HasSuper() bool { return s.live.Load().SuperDigest != "" }
