package identity

import (
	"crypto"
	_ "crypto/sha1" //nolint:gosec // the digest scheme's hash unless configured otherwise
	_ "crypto/sha256"
	_ "crypto/sha3"
	_ "crypto/sha512"
	"crypto/subtle"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/sasl"
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
	// LetAnySASLUserDoX is an id. Permissions of sasl:LetAnySASLUserDoX in an ACL belong to every
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

// X509 is the scheme x509: a client with a verified certificate has the identity x509:ID from the
// end of the TLS handshake on.
type X509 struct {
	// SuperUser is the ID of the client that also passes every ACL check
	// (X509AuthenticationProvider.superUser). Empty: there is none.
	SuperUser string
	// ID returns the identity of a verified certificate. A client for whose certificate ID returns
	// an error has no identity x509. Default: CertificateID.
	ID func(*x509.Certificate) (string, error)
	// TextIDs: the results of ID need not be distinguished names, and ACLs may name any text.
	TextIDs bool
}

// Schemes of identities.
const (
	SchemeIP     = "ip"
	SchemeDigest = "digest"
	SchemeX509   = "x509"
	SchemeSASL   = "sasl"
	SchemeSuper  = "super"

	schemeEnsemble = "ensemble" // no identity has it
)

// Settings are all rules of an Authority. They are not changed while an Authority has them.
type Settings struct {
	Authentication
	SuperDigest     string // as in server.Config
	DigestAlgorithm string // the same; a key of digestHashes
	DisableDigest   bool   // the same
}

// DefaultDigestAlgorithm is the algorithm that ZooKeeper's digest scheme has always used.
const DefaultDigestAlgorithm = "SHA1"

var digestHashes = map[string]crypto.Hash{
	DefaultDigestAlgorithm: crypto.SHA1,
	"SHA-224":              crypto.SHA224, "SHA-256": crypto.SHA256, "SHA-384": crypto.SHA384, "SHA-512": crypto.SHA512,
	"SHA3-224": crypto.SHA3_224, "SHA3-256": crypto.SHA3_256, "SHA3-384": crypto.SHA3_384, "SHA3-512": crypto.SHA3_512,
}

// IsDigest reports whether text is the base64 of a hash by an algorithm of the digest scheme.
func IsDigest(text, algorithm string) bool {
	b, err := base64.StdEncoding.Strict().DecodeString(text)
	return err == nil && len(b) == digestHashes[algorithm].Size()
}

// Check returns an error that names the wrong settings.
func (s *Settings) Check() (errs []error) {
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("server: "+format, args...)) }
	if _, ok := digestHashes[s.DigestAlgorithm]; !ok {
		bad("DigestAlgorithm %q is unknown; known: %s",
			s.DigestAlgorithm, strings.Join(slices.Sorted(maps.Keys(digestHashes)), ", "))
	}
	if s.SuperDigest != "" && !strings.Contains(s.SuperDigest, ":") {
		bad("SuperDigest is not user:base64(hash(user:password))") // it may be a password, so it is not shown
	}
	for _, scheme := range s.Required {
		switch scheme {
		case SchemeIP, SchemeDigest, SchemeX509, SchemeSASL:
		default:
			bad("Auth.Required has %q, which no client could have: allowed are ip, digest, x509 and sasl", scheme)
		}
	}
	for _, scheme := range s.ACLSchemes {
		if scheme != SchemeX509 && scheme != SchemeSASL {
			bad("Auth.ACLSchemes has %q, allowed are x509 and sasl", scheme)
		}
	}
	return errs
}

// Errors of an Authority.
var (
	// ErrNotAuthenticated means that the credentials identify nobody.
	ErrNotAuthenticated = errors.New("server: not authenticated")
	// ErrNotAuthorized means that the caller is not an administrator.
	ErrNotAuthorized = errors.New("server: not authorized")
)

// errNoSASLPassword is for servers without DIGEST-MD5.
var errNoSASLPassword = fmt.Errorf("%w: no SASL users with passwords are configured", ErrNotAuthenticated)

var superID = proto.ID{Scheme: SchemeSuper}

// Authority proves identities by the rules of a server: for the clients of its ports, and for
// callers of the embedding program. Its methods may be called from any goroutine.
//
// An Authority owns its settings, which are replaced as a whole: a proof sees either the old ones
// or the new ones. Each proof that fails is counted once.
type Authority struct {
	hooks    Hooks
	settings atomic.Pointer[Settings]
}

// Hooks are the functions of the server that an Authority calls.
type Hooks struct {
	// Granted reports whether the ACL of the root znode gives all permissions to ids by name.
	Granted func(ids []proto.ID) bool
	// Failed counts a proof that failed.
	Failed func()
}

// Init must be called before any other method, except for Set.
func (a *Authority) Init(h Hooks) { a.hooks = h }

// Set replaces the settings, for proofs that begin afterwards.
func (a *Authority) Set(s Settings) { a.settings.Store(&s) }

// HasSuper reports whether there is a superuser with a password (server.Config.SuperDigest).
func (a *Authority) HasSuper() bool { return a.settings.Load().SuperDigest != "" }

// Authorize checks whether a caller is the superuser, or somebody to whom the ACL of the root znode
// gives all permissions by name. What the ACL gives to everybody does not count, nor does
// server.Config.SkipACL. The ACL proves little: while it is open, as it is initially, every client
// can enter itself there. AuthorizeSuper does not ask the ACL.
//
// scheme and credentials are those of a client's addauth: digest and user:password, or ip. address
// is the host that the request comes from, and is used for ip. Authorize returns nil,
// ErrNotAuthenticated or ErrNotAuthorized.
func (a *Authority) Authorize(scheme, credentials, address string) error {
	ids, err := a.prove(scheme, credentials, address)
	if err == nil && !slices.Contains(ids, superID) && !a.hooks.Granted(ids) {
		err = ErrNotAuthorized
	}
	return err
}

// AuthorizeSuper checks whether a caller is the superuser (server.Config.SuperDigest). Arguments
// and errors are those of Authorize.
func (a *Authority) AuthorizeSuper(scheme, credentials, address string) error {
	ids, err := a.prove(scheme, credentials, address)
	if err == nil && !slices.Contains(ids, superID) {
		err = ErrNotAuthorized
	}
	return err
}

// prove returns the identities that credentials prove. Source: Commands.handleAuthentication.
func (a *Authority) prove(scheme, credentials, address string) ([]proto.ID, error) {
	switch s := a.settings.Load(); {
	case scheme == SchemeIP && address != "":
		return []proto.ID{{Scheme: SchemeIP, ID: address}}, nil
	case scheme == SchemeDigest && credentials != "" && !s.DisableDigest:
		return s.digest(credentials), nil
	}
	a.hooks.Failed()
	return nil, ErrNotAuthenticated
}

func (s *Settings) digest(userPassword string) []proto.ID {
	user, _, _ := strings.Cut(userPassword, ":")
	hash := digestHashes[s.DigestAlgorithm].New()
	_, _ = hash.Write([]byte(userPassword)) // never fails
	id := user + ":" + base64.StdEncoding.EncodeToString(hash.Sum(nil))
	ids := []proto.ID{{Scheme: SchemeDigest, ID: id}}
	if s.SuperDigest != "" && subtle.ConstantTimeCompare([]byte(s.SuperDigest), []byte(id)) == 1 {
		ids = append(ids, superID)
	}
	return ids
}

// Identify returns the identities that a name and a password prove: with the scheme digest, as a
// client's addauth; with sasl, as DIGEST-MD5. NB: every name and password is an identity of the
// scheme digest. The error wraps ErrNotAuthenticated.
func (a *Authority) Identify(scheme, user, password string) ([]proto.ID, error) {
	if scheme == SchemeDigest {
		return a.prove(scheme, user+":"+password, "")
	}
	mechanism := a.settings.Load().SASL
	if scheme != SchemeSASL || mechanism == nil {
		a.hooks.Failed()
		return nil, errNoSASLPassword
	}
	id, err := provePassword(mechanism, user, password)
	if err != nil {
		a.hooks.Failed()
		return nil, fmt.Errorf("%w: %w", ErrNotAuthenticated, err)
	}
	return a.IdentifySASL(id), nil
}

// provePassword plays both sides of an exchange of DIGEST-MD5.
func provePassword(mechanism sasl.Server, user, password string) (id string, err error) {
	client, err := sasl.NewDigestClient(user, password).New("")
	if err != nil {
		return "", err
	}
	server := mechanism.New()
	var token []byte
	for range maxTokens {
		reply, clientDone, err := client.Step(token)
		if err != nil || reply == nil {
			return "", errors.Join(err, sasl.ErrRefused)
		}
		var done bool
		if token, id, done, err = server.Step(reply); done || err != nil {
			return id, err
		}
		if clientDone {
			break
		}
	}
	return "", sasl.ErrRefused
}

// IdentifySASL returns the identities of a client that something else than the server has found to
// be the SASL user id, for example a proxy that the program trusts.
func (a *Authority) IdentifySASL(id string) []proto.ID {
	s := a.settings.Load()
	ids := []proto.ID{{Scheme: SchemeSASL, ID: id}}
	if slices.Contains(s.SASLSupers, id) {
		ids = append(ids, superID)
	}
	if id == "super" { // the name, not the setting
		ids = append(ids, proto.ID{Scheme: proto.SchemeSASLAll})
	}
	if x := s.LetAnySASLUserDoX; x != "" {
		ids = append(ids, proto.ID{Scheme: proto.SchemeSASLAny, ID: x})
	}
	return ids
}

// IdentifyCertificate returns the identities that a verified certificate proves.
func (a *Authority) IdentifyCertificate(cert *x509.Certificate) ([]proto.ID, error) {
	x := &a.settings.Load().X509
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
		ids = append(ids, proto.ID{Scheme: SchemeSuper, ID: id})
	}
	return append(ids, proto.ID{Scheme: SchemeX509, ID: id}), nil
}
