package server

import (
	"crypto"
	_ "crypto/sha1" //nolint:gosec // the digest scheme's hash unless configured otherwise
	_ "crypto/sha256"
	_ "crypto/sha3"
	_ "crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/printable"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
	"github.com/gozkd/gozkd/server/internal/meter"
)

// superID passes every ACL check.
var superID = proto.ID{Scheme: "super"}

// answerAuth answers an auth packet.
func (c *conn) answerAuth(h proto.RequestHeader, d *jute.Decoder, now time.Time, t *meter.BatchStats) pause {
	code, answered := c.authenticate(d)
	if !answered {
		c.CloseLocked()
		return pauseClosed
	}
	c.status(h, code, 0, code != proto.OK, now, t)
	if code != proto.OK {
		return pauseEnd
	}
	return pauseNone
}

// authenticate adds an identity to the connection, for requests that come after it. If answered is
// false, the connection must be closed without an answer: after an answer, the client would not try
// the next server.
func (c *conn) authenticate(d *jute.Decoder) (code proto.ErrCode, answered bool) {
	var r proto.AuthRequest
	r.Decode(d)
	defer func() { c.server.trail.Auth(c, r.Scheme, code) }()
	if d.Err() != nil {
		return proto.ErrAuthFailed, true
	}
	switch {
	case r.Scheme == schemeIP: // every connection has this identity already
		return proto.OK, true
	case r.Scheme == schemeX509 && c.leaf != nil: // a client with a verified certificate has this identity already
		return proto.OK, true
	case r.Scheme == schemeEnsemble && c.server.live.Load().Auth.Ensemble:
		if c.server.live.Load().Auth.ensembleNamed(r.Auth) {
			return proto.OK, true
		}
		c.server.meter.Count(meter.AuthFailed)
		c.logger().Warn("connection closed: the client looks for another ensemble (ensembleAuthName)",
			"name", strings.Clone(printable.Text(printable.Shortened(string(r.Auth), 64))))
		return proto.ErrBadArguments, false
	case r.Scheme == schemeDigest && r.Auth != nil && !c.server.live.Load().DisableDigest && c.addIDs(c.server.digestIDs(jute.Text(r.Auth))...):
		return proto.OK, true
	}
	c.server.meter.Count(meter.AuthFailed)
	c.logger().Warn("authentication failed", "scheme", strings.Clone(printable.Text(printable.Shortened(r.Scheme, 64))))
	return proto.ErrAuthFailed, true
}

// maxIDBytes bounds the identities of a connection: each of its writes carries them into the log.
const maxIDBytes = 8 << 10

// defaultDigestAlgorithm is what ZooKeeper's digest scheme has always used.
const defaultDigestAlgorithm = "SHA1"

// digestHashes has the hashes of Config.DigestAlgorithm.
var digestHashes = map[string]crypto.Hash{
	defaultDigestAlgorithm: crypto.SHA1,
	"SHA-224":              crypto.SHA224, "SHA-256": crypto.SHA256, "SHA-384": crypto.SHA384, "SHA-512": crypto.SHA512,
	"SHA3-224": crypto.SHA3_224, "SHA3-256": crypto.SHA3_256, "SHA3-384": crypto.SHA3_384, "SHA3-512": crypto.SHA3_512,
}

func (c *Config) ensureDigest() (errs []error) {
	setDefault(&c.DigestAlgorithm, defaultDigestAlgorithm)
	if _, ok := digestHashes[c.DigestAlgorithm]; !ok {
		errs = append(errs, fmt.Errorf("server: DigestAlgorithm %q is unknown; known: %s", c.DigestAlgorithm, strings.Join(slices.Sorted(maps.Keys(digestHashes)), ", ")))
	}
	if c.SuperDigest != "" && !strings.Contains(c.SuperDigest, ":") {
		errs = append(errs, errors.New("server: SuperDigest is not user:base64(hash(user:password))")) // it may be a password, so it is not shown
	}
	return errs
}

// digestIDs returns the identities of a user with that password.
func (s *Server) digestIDs(userPassword string) []proto.ID {
	user, _, _ := strings.Cut(userPassword, ":")
	hash := digestHashes[s.cfg.DigestAlgorithm].New()
	_, _ = hash.Write([]byte(userPassword)) // never fails
	id := user + ":" + base64.StdEncoding.EncodeToString(hash.Sum(nil))
	ids := []proto.ID{{Scheme: "digest", ID: id}}
	if super := s.live.Load().SuperDigest; super != "" && subtle.ConstantTimeCompare([]byte(super), []byte(id)) == 1 {
		ids = append(ids, superID)
	}
	return ids
}

// Errors of Authorize.
var (
	// ErrNotAuthenticated means that the credentials identify nobody.
	ErrNotAuthenticated = errors.New("server: not authenticated")
	// ErrNotAuthorized means that the caller is not an administrator.
	ErrNotAuthorized = errors.New("server: not authorized")
)

// Authorize checks whether a caller is the superuser, or somebody to whom the ACL of the root znode
// gives all permissions by name. What the ACL gives to everybody does not count, nor does
// Config.SkipACL. The ACL proves little: while it is open, as it is initially, every client can
// enter itself there. AuthorizeSuper does not ask the ACL.
//
// scheme and credentials are those of a client's addauth: digest and user:password, or ip. address
// is the host that the request comes from, and is used for ip. Authorize returns nil,
// ErrNotAuthenticated or ErrNotAuthorized.
func (s *Server) Authorize(scheme, credentials, address string) error {
	ids, err := s.identify(scheme, credentials, address)
	if err != nil || slices.Contains(ids, superID) {
		return err
	}
	s.state.RLock()
	defer s.state.RUnlock()
	if !s.state.tree.Granted("/", proto.PermAll, ids) {
		return ErrNotAuthorized
	}
	return nil
}

// AuthorizeSuper checks whether a caller is the superuser (Config.SuperDigest). Arguments and
// errors are those of Authorize.
func (s *Server) AuthorizeSuper(scheme, credentials, address string) error {
	ids, err := s.identify(scheme, credentials, address)
	if err == nil && !slices.Contains(ids, superID) {
		err = ErrNotAuthorized
	}
	return err
}

// identify returns the identities that credentials prove. Source: ZooKeeper's
// Commands.handleAuthentication.
func (s *Server) identify(scheme, credentials, address string) ([]proto.ID, error) {
	switch cfg := s.live.Load(); {
	case scheme == "ip" && address != "":
		return []proto.ID{{Scheme: "ip", ID: address}}, nil
	case scheme == "digest" && credentials != "" && !cfg.DisableDigest:
		return s.digestIDs(credentials), nil
	}
	s.meter.Count(meter.AuthFailed)
	return nil, ErrNotAuthenticated
}
