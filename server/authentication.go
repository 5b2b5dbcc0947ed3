package server

import (
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
	"github.com/gozkd/gozkd/sasl"
	"github.com/gozkd/gozkd/server/internal/meter"
)

// Authentication is how clients prove who they are, except for the digest scheme, and which
// identities they need. Names in parentheses are ZooKeeper's.
type Authentication struct {
	X509 X509
	// SASL is the mechanism of SASL. Nil: a client that begins an exchange gets an empty answer and
	// no identity, as from a ZooKeeper without a JAAS file.
	SASL sasl.Server
	// SASLSupers are the ids of scheme sasl that pass every ACL check (superUser).
	SASLSupers []string
	// LetAnySASLUserDoX is an id: what an ACL grants to sasl:LetAnySASLUserDoX it grants to every
	// client with an identity of scheme sasl (letAnySaslUserDoX). Empty: none.
	LetAnySASLUserDoX string
	// AllowFailedSASL keeps the connection of a client that fails to authenticate, without the
	// identity (allowSaslFailedClients), unless Required has sasl.
	AllowFailedSASL bool
	// Ensemble enables the scheme ensemble: a client that authenticates with a name is disconnected
	// unless EnsembleNames, which may be empty to admit every name, has it (ensembleAuthName). It
	// gives no identity.
	Ensemble      bool
	EnsembleNames []string
	// Required are schemes (enforce.auth.schemes): a client needs an identity of any of them.
	// Otherwise the server refuses its first request other than auth and sasl, and closes the
	// connection. Empty: no identity is needed.
	Required []string
	// ACLSchemes are the schemes, of x509 and sasl, that ACLs may name beside world, auth, digest
	// and ip, once the ensemble has feature level 2.
	ACLSchemes []string
}

// Certificates is what the program that embeds a server knows about its certificates.
type Certificates struct {
	// Reloads is how often changed files were taken over, Refused how often they could not be used.
	Reloads, Refused int64
	// Expires is when the first certificate of this server ends; zero if there is none.
	Expires time.Time
}

// X509 is the scheme x509: a client with a verified certificate has the identity x509:ID from the
// end of the TLS handshake on.
type X509 struct {
	// SuperUser is the ID of the client that also passes every ACL check
	// (X509AuthenticationProvider.superUser). Empty: there is none.
	SuperUser string
	// ID returns the identity of a verified certificate. A client for whose certificate ID returns
	// an error has no identity x509. Default: CertificateID.
	ID func(*x509.Certificate) (string, error)
	// TextIDs: what ID returns need not be distinguished names, and ACLs may name any text.
	TextIDs bool
}

// Schemes of identities.
const (
	schemeIP       = "ip"
	schemeDigest   = "digest"
	schemeX509     = "x509"
	schemeSASL     = "sasl"
	schemeEnsemble = "ensemble"
)

// check returns what is wrong with the settings.
func (a *Authentication) check() (errs []error) {
	for _, scheme := range a.Required {
		switch scheme {
		case schemeIP, schemeDigest, schemeX509, schemeSASL:
		default:
			errs = append(errs, fmt.Errorf("server: Auth.Required has %q, which no client could have: allowed are ip, digest, x509 and sasl", scheme))
		}
	}
	for _, scheme := range a.ACLSchemes {
		if scheme != schemeX509 && scheme != schemeSASL {
			errs = append(errs, fmt.Errorf("server: Auth.ACLSchemes has %q, allowed are x509 and sasl", scheme))
		}
	}
	return errs
}

// admitted reports whether the client may send such a request. If schemes are required, requests
// other than auth and sasl need an identity of one of these schemes.
func (i *identity) admitted(op proto.OpCode, required []string) bool {
	return len(required) == 0 || op == proto.OpAuth || op == proto.OpSASL ||
		slices.ContainsFunc(i.ids, func(id proto.ID) bool { return slices.Contains(required, id.Scheme) })
}

// refuseAnonymous answers the first request of a client without an identity that is required, and
// closes the connection. The session ages out.
func (c *conn) refuseAnonymous(h proto.RequestHeader, now time.Time, t *meter.BatchStats) pause {
	c.server.meter.Count(meter.AuthFailed)
	c.logger().Warn("connection closed: the client has not authenticated itself (enforce.auth.schemes, sessionRequireClientSASLAuth)",
		"session", c.session.String(), "required", strings.Join(c.server.live.Load().Auth.Required, ","))
	c.server.trail.Auth(c, "none before "+h.Op.String(), proto.ErrSessionClosedRequireSASLAuth)
	c.status(h, proto.ErrSessionClosedRequireSASLAuth, 0, true, now, t)
	return pauseEnd
}

// ensembleNamed reports whether a client that looks for an ensemble of that name has found it.
func (a *Authentication) ensembleNamed(name []byte) bool {
	return len(name) == 0 || len(a.EnsembleNames) == 0 || slices.Contains(a.EnsembleNames, jute.Text(name))
}

// addIDs adds identities to the connection, for requests that come after it, and returns false if
// there is no room.
func (i *identity) addIDs(more ...proto.ID) bool {
	ids := slices.Clone(i.ids) // requests under way keep the old list
	for _, id := range more {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	size := 0
	for _, id := range ids {
		size += len(id.Scheme) + len(id.ID)
	}
	if size > maxIDBytes {
		return false
	}
	orderIDs(ids)
	i.ids = ids
	return true
}

// saslIDs returns the identities of a client that has proved to be id.
func (s *Server) saslIDs(id string) []proto.ID {
	auth := &s.live.Load().Auth
	ids := []proto.ID{{Scheme: schemeSASL, ID: id}}
	if slices.Contains(auth.SASLSupers, id) {
		ids = append(ids, superID)
	}
	if s.hasLevel(consensus.Level2) { // older versions would not know these, and apply the client's writes otherwise
		if id == "super" { // the name, not the setting
			ids = append(ids, proto.ID{Scheme: datatree.SchemeSASLAll})
		}
		if x := auth.LetAnySASLUserDoX; x != "" {
			ids = append(ids, proto.ID{Scheme: datatree.SchemeSASLAny, ID: x})
		}
	}
	return ids
}

// ShownIDs returns identities without those that only ACLs are compared with, such as that of
// LetAnySASLUserDoX. Identify returns these, too; they are for DialAs, and not for others to see.
func ShownIDs(ids []proto.ID) []proto.ID {
	if !slices.ContainsFunc(ids, hiddenID) {
		return ids
	}
	return slices.DeleteFunc(slices.Clone(ids), hiddenID)
}

func hiddenID(id proto.ID) bool {
	return id.Scheme == datatree.SchemeSASLAll || id.Scheme == datatree.SchemeSASLAny
}

// hasLevel reports whether requests may have what a feature level has brought.
func (s *Server) hasLevel(l consensus.Level) bool { return s.node.Status().Level >= l }

// requestFlags returns the settings that are part of a client's request.
func (s *Server) requestFlags() (f datatree.RequestFlags) {
	cfg := s.live.Load()
	if cfg.EnforceQuota {
		f |= datatree.FlagEnforceQuota
	}
	if cfg.SkipACL {
		f |= datatree.FlagSkipACL
	}
	if (len(cfg.Auth.ACLSchemes) > 0 || cfg.RefuseTTL || cfg.OneVoter) && s.hasLevel(consensus.Level2) {
		if slices.Contains(cfg.Auth.ACLSchemes, schemeX509) {
			f |= datatree.FlagX509
			if cfg.Auth.X509.TextIDs {
				f |= datatree.FlagX509Text
			}
		}
		if slices.Contains(cfg.Auth.ACLSchemes, schemeSASL) {
			f |= datatree.FlagSASL
		}
		if cfg.RefuseTTL {
			f |= datatree.FlagRefuseTTL
		}
		if cfg.OneVoter {
			f |= datatree.FlagOneVoter
		}
	}
	if cfg.MultiAddress && s.hasLevel(consensus.Level3) {
		f |= datatree.FlagMultiAddress
	}
	return f
}
