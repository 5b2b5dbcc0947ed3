package sasl

import (
	"crypto/md5" //nolint:gosec // DIGEST-MD5 is defined with it
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"strings"
)

// Realm is both the realm and the host name in DIGEST-MD5, on every ZooKeeper server.
const Realm = "zk-sasl-md5"

const (
	digestURI     = "zookeeper/" + Realm
	firstUse      = "00000001" // a nonce is used once
	serverMethod  = ""         // of the A2 of a server's response
	clientMethod  = "AUTHENTICATE"
	qualityOfAuth = "auth"
)

// DigestUsers maps users to MD5(user:realm:password). It authenticates as the password does.
type DigestUsers map[string][md5.Size]byte

// Set adds a user, or replaces the user's password.
func (u DigestUsers) Set(name, password string) { u[name] = userHash(name, password) }

// SetHash adds a user by the hexadecimal MD5(user:realm:password) that htdigest prints.
func (u DigestUsers) SetHash(name, hash string) error {
	b, err := hex.DecodeString(hash)
	if err != nil || len(b) != md5.Size {
		return fmt.Errorf("sasl: the hash of user %q is not 32 hexadecimal digits: make it with htdigest, for the realm %s", name, Realm)
	}
	u[name] = [md5.Size]byte(b)
	return nil
}

// userHash returns MD5(user:realm:password). As in Java, each part is encoded in Latin-1 if
// possible, otherwise in UTF-8.
func userHash(name, password string) [md5.Size]byte {
	return md5.Sum([]byte(latin1(name) + ":" + latin1(Realm) + ":" + latin1(password))) //nolint:gosec // see the import
}

// latin1 returns s in ISO 8859-1, or s itself if ISO 8859-1 lacks one of its characters.
func latin1(s string) string {
	b := make([]byte, 0, len(s))
	for _, r := range s {
		if r > 0xff {
			return s
		}
		b = append(b, byte(r))
	}
	return string(b)
}

// NewDigest returns a server of DIGEST-MD5 (RFC 2831, qop auth) for these users. The identity is
// the user's name; an authorization id that the client asks for has no effect, as in ZooKeeper.
func NewDigest(users DigestUsers) Server { return &digestServer{users: maps.Clone(users)} }

type digestServer struct{ users DigestUsers }

func (s *digestServer) New() Exchange { return &digestExchange{users: s.users} }

// digestExchange is the server's side. nonce is empty before the challenge.
type digestExchange struct {
	users DigestUsers
	nonce string
	over  bool
}

func (x *digestExchange) Step(token []byte) (reply []byte, id string, done bool, err error) {
	switch {
	case x.over:
		return nil, "", false, fmt.Errorf("%w: the exchange is over", ErrRefused)
	case x.nonce == "": // as in Java, the content of the first token has no meaning
		x.nonce = newNonce()
		return []byte(`realm="` + Realm + `",nonce="` + x.nonce + `",charset=utf-8,algorithm=md5-sess`), "", false, nil
	}
	x.over = true
	d, err := parseDirectives(token)
	if err != nil {
		return nil, "", false, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if err := x.check(d); err != nil {
		return nil, "", false, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	name := d.name()
	secret, known := x.users[name]
	if !known { // as much work, and the same error, as for a wrong password
		_, _ = rand.Read(secret[:])
	}
	want := d.response(secret, clientMethod)
	if subtle.ConstantTimeCompare([]byte(want), []byte(d["response"])) != 1 || !known {
		return nil, "", false, fmt.Errorf("%w: unknown user or wrong password", ErrRefused)
	}
	return []byte("rspauth=" + d.response(secret, serverMethod)), name, true, nil
}

// check returns the reason why a response is invalid with any password.
func (x *digestExchange) check(d directives) error {
	for _, name := range []string{"username", "realm", "nonce", "nc", "cnonce", "digest-uri", "response"} {
		if _, ok := d[name]; !ok {
			return errors.New("the response has no " + name)
		}
	}
	qop, hasQop := d["qop"]
	charset, hasCharset := d["charset"]
	switch {
	case d["realm"] != Realm:
		return errors.New("another realm")
	case subtle.ConstantTimeCompare([]byte(d["nonce"]), []byte(x.nonce)) != 1:
		return errors.New("another nonce")
	case d["nc"] != firstUse:
		return errors.New("the nonce is not used for the first time")
	case !strings.EqualFold(d["digest-uri"], digestURI):
		return errors.New("another service or host")
	case hasQop && qop != qualityOfAuth:
		return errors.New("a quality of protection that was not offered")
	case hasCharset && !strings.EqualFold(charset, "utf-8"):
		return errors.New("another character set")
	}
	return nil
}

// newNonce returns 40 random characters, as many as Java.
func newNonce() string {
	var b [30]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.StdEncoding.EncodeToString(b[:])
}

// NewDigestClient returns a client of DIGEST-MD5.
func NewDigestClient(user, password string) Client {
	return &digestClient{user: user, secret: userHash(user, password)}
}

type digestClient struct {
	user   string
	secret [md5.Size]byte
}

// New ignores the host: in ZooKeeper's DIGEST-MD5 every server is called Realm.
func (c *digestClient) New(string) (ClientExchange, error) { return &digestAnswer{client: c}, nil }

// digestAnswer is the client's side.
type digestAnswer struct {
	client *digestClient
	began  bool
	sent   directives // the response; nil before it was sent
}

func (a *digestAnswer) Step(token []byte) (reply []byte, done bool, err error) {
	if !a.began {
		a.began = true
		return []byte{}, false, nil
	}
	d, err := parseDirectives(token)
	switch {
	case err != nil:
		return nil, false, fmt.Errorf("sasl: token of the server: %w", err)
	case a.sent != nil:
		want := a.sent.response(a.client.secret, serverMethod)
		if subtle.ConstantTimeCompare([]byte(want), []byte(d["rspauth"])) != 1 {
			return nil, false, errors.New("sasl: the server does not know the password: it may be another one's")
		}
		return nil, true, nil
	case d["nonce"] == "":
		return nil, false, errors.New("sasl: the server's challenge has no nonce: it may speak another mechanism than DIGEST-MD5")
	}
	realm, ok := d["realm"]
	if !ok || realm != Realm { // the secret depends on the realm
		return nil, false, fmt.Errorf("sasl: the server has the realm %q, ZooKeeper's is %s", realm, Realm)
	}
	a.sent = directives{
		"charset": "utf-8", "username": a.client.user, "realm": realm, "nonce": d["nonce"], "nc": firstUse,
		"cnonce": newNonce(), "digest-uri": digestURI, "maxbuf": "65536", "qop": qualityOfAuth,
	}
	a.sent["response"] = a.sent.response(a.client.secret, clientMethod)
	return a.sent.encode(), false, nil
}

// response returns the value of the directive response or, with an empty method, of rspauth.
// Source: RFC 2831, 2.1.2.1.
func (d directives) response(secret [md5.Size]byte, method string) string {
	a1 := string(secret[:]) + ":" + d["nonce"] + ":" + d["cnonce"]
	if authzid, ok := d["authzid"]; ok {
		a1 += ":" + authzid
	}
	return hexMD5(hexMD5(a1) + ":" + d["nonce"] + ":" + d["nc"] + ":" + d["cnonce"] + ":" + qualityOfAuth + ":" + hexMD5(method+":"+d["digest-uri"]))
}

func hexMD5(s string) string {
	sum := md5.Sum([]byte(s)) //nolint:gosec // see the import
	return hex.EncodeToString(sum[:])
}
