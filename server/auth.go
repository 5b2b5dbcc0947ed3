package server

import (
	"crypto/x509"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/printable"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
	"github.com/gozkd/gozkd/server/facts"
	"github.com/gozkd/gozkd/server/identity"
	"github.com/gozkd/gozkd/server/internal/link"
	"github.com/gozkd/gozkd/server/internal/meter"
)

type (
	// Authentication says how clients prove who they are, except for the digest scheme.
	Authentication = identity.Authentication
	// X509 says how certificates do.
	X509 = identity.X509
)

// Identities proves who callers of the embedding program are, by the rules for clients. It may be
// called at any time. While the server does not accept connections, a SASL user lacks the
// identities of feature level 2.
func (s *Server) Identities() *identity.Authority { return &s.identities }

func (c *Config) identities() identity.Settings {
	return identity.Settings{
		Authentication: c.Auth, SuperDigest: c.SuperDigest, DigestAlgorithm: c.DigestAlgorithm, DisableDigest: c.DisableDigest,
	}
}

func (c *conn) answerAuth(r *received) pause {
	d := r.decoder()
	var auth proto.AuthRequest
	auth.Decode(&d)
	code := proto.ErrAuthFailed
	if d.Err() == nil {
		code = c.Auth(&c.server.identities, auth.Scheme, auth.Auth)
		switch code {
		case proto.ErrBadArguments:
			c.logger().Warn("connection closed: the client looks for another ensemble (ensembleAuthName)", "name", inLog(string(auth.Auth)))
		case proto.ErrAuthFailed:
			c.logger().Warn("authentication failed", "scheme", inLog(auth.Scheme))
		}
	}
	c.server.trail.Auth(c, auth.Scheme, code, r.now)
	if code != proto.OK {
		c.noteEnd(facts.ServerSide, authFailed)
	}
	if code == proto.ErrBadArguments {
		c.CloseLocked()
		return pauseClosed
	}
	c.status(r, code, 0, code != proto.OK)
	if code != proto.OK {
		return pauseEnd
	}
	return pauseNone
}

const authFailed = "authentication failed"

func inLog(text string) string { return strings.Clone(printable.Text(printable.Shortened(text, 64))) }

// refuseAnonymous answers the first request of a client without an identity that is required, and
// closes the connection. The session ages out.
func (c *conn) refuseAnonymous(r *received) pause {
	c.server.meter.Count(meter.AuthFailed)
	c.logger().Warn("connection closed: the client has not authenticated itself (enforce.auth.schemes, sessionRequireClientSASLAuth)",
		"session", c.session.String(), "required", strings.Join(c.server.live.Load().Auth.Required, ","))
	c.server.trail.Auth(c, "none before "+r.Op.String(), proto.ErrSessionClosedRequireSASLAuth, r.now)
	c.noteEnd(facts.ServerSide, "the client had not authenticated itself")
	c.status(r, proto.ErrSessionClosedRequireSASLAuth, 0, true)
	return pauseEnd
}

// answerSASL answers a request of a SASL exchange. The mechanism may take milliseconds, so
// answerSASL returns pauseSASL first: then stepSASL must be called without locks.
func (c *conn) answerSASL(r *received) (pause, error) {
	if token, err := saslToken(r.body); err != nil || token == nil {
		return pauseNone, errors.New("sasl request without a token")
	}
	answer, ok := c.Answer(&c.server.identities)
	switch {
	case !ok:
		return pauseSASL, nil
	case answer.Err != nil:
		c.server.trail.Auth(c, identity.SchemeSASL, proto.ErrAuthFailed, r.now)
		c.logger().Warn("authentication failed", "scheme", identity.SchemeSASL,
			"reason", strings.Clone(printable.Text(answer.Err.Error())))
	case answer.Done:
		c.logger().Debug("authenticated", "scheme", identity.SchemeSASL, "id", inLog(answer.ID))
		c.server.trail.Auth(c, identity.SchemeSASL, proto.OK, r.now)
	}
	c.push(&queuedStatus{ // a reply with an error has a body, too
		op: r.Op, xid: r.Xid, code: answer.Code, closes: answer.Code != proto.OK, received: r.now,
		body: jute.AppendBuffer(make([]byte, 0, 4+len(answer.Reply)), answer.Reply),
	}, r.stats)
	if answer.Code != proto.OK {
		c.noteEnd(facts.ServerSide, authFailed)
		return pauseEnd, nil
	}
	return pauseNone, nil
}

// stepSASL hands the token of the request in front to the mechanism. No lock is held.
func (c *conn) stepSASL(in *link.Input) {
	s := c.server
	s.conns.turns.begin()
	defer s.conns.turns.end()
	if c.SASL == nil {
		c.SASL = s.identities.Exchange(time.Now())
	}
	if c.SASL == nil {
		return // Reload has removed it since
	}
	at := in.At()
	frame, _ := in.Frame(s.cfg.MaxBuffer) // it was decoded before, without an error
	in.Back(at)
	token, _ := saslToken(frame[proto.RequestHeaderBytes:])
	c.SASL.Step(token, s.standstill.Elapsed(c.SASL.Begun, time.Now()), s.live.Load().HandshakeTimeout)
}

func saslToken(body []byte) ([]byte, error) {
	d := jute.NewDecoder(body)
	var r proto.TokenRecord
	r.Decode(&d)
	return r.Token, d.Err()
}

// identifyCertificate adds the identities that the verified certificate proves. c is locked.
func (c newcomer) identifyCertificate(leaf *x509.Certificate, now time.Time) {
	code := proto.OK
	if err := c.Certified(&c.server.identities, leaf); err != nil {
		c.logger().Warn("the client has no identity x509", "subject", leaf.Subject.String(), "error", err)
		code = proto.ErrAuthFailed
	}
	c.server.trail.Auth(c.conn, identity.SchemeX509, code, now)
}

// requestFlags returns the settings that are part of a client's request.
func (s *shared) requestFlags() datatree.RequestFlags {
	cfg := s.live.Load()
	names := func(scheme string) bool { return slices.Contains(cfg.Auth.ACLSchemes, scheme) }
	return onlyIf(cfg.EnforceQuota, datatree.FlagEnforceQuota) | onlyIf(cfg.SkipACL, datatree.FlagSkipACL) |
		onlyIf(names(identity.SchemeX509), datatree.FlagX509) |
		onlyIf(names(identity.SchemeX509) && cfg.Auth.X509.TextIDs, datatree.FlagX509Text) |
		onlyIf(names(identity.SchemeSASL), datatree.FlagSASL) |
		onlyIf(cfg.RefuseTTL, datatree.FlagRefuseTTL) | onlyIf(cfg.OneVoter, datatree.FlagOneVoter) |
		onlyIf(cfg.MultiAddress, datatree.FlagMultiAddress)
}

func onlyIf(holds bool, f datatree.RequestFlags) datatree.RequestFlags {
	if !holds {
		f = 0
	}
	return f
}
