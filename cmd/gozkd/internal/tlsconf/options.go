package tlsconf

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/internal/certhost"
)

// Role is the side of connections that a configuration is for. Different roles require different
// stores.
type Role int

const (
	// Server accepts connections: it needs a key store, and a trust store unless callers need no
	// certificate.
	Server Role = iota
	// Client dials: without a trust store it trusts the authorities of the system.
	Client
	// Both accepts and dials, as members of an ensemble do: it needs both stores.
	Both
)

// Store is a key store or a trust store.
type Store struct {
	Location string
	// Type is JKS, PKCS12, PEM or empty. The content of the file decides.
	Type     string
	Password string
	// PasswordFile is a file with the password. It wins over Password.
	PasswordFile string
	// Key is a PEM file with the key of a PEM key store, if Location has only certificates.
	Key string
}

// Values of Options.ClientAuth.
const (
	None = "none" // callers are not asked for a certificate
	Want = "want" // a certificate is verified if the caller has one
	Need = "need" // callers without a certificate are refused
)

// Options are the ssl.* keys. The zero value of a field is not always ZooKeeper's default: see
// Defaults.
type Options struct {
	// Prefix is the beginning of the keys in messages: "ssl." or "ssl.quorum.".
	Prefix string
	Role   Role

	KeyStore, TrustStore Store
	// Protocol is the only version to use; EnabledProtocols wins over it. Empty and TLS mean
	// TLSv1.2 and TLSv1.3.
	Protocol         string
	EnabledProtocols []string
	CipherSuites     []string
	// ClientAuth is None, Want or Need; empty means Need.
	ClientAuth string

	// HostnameVerification has a client compare the server's name with its certificate. Together
	// with ClientHostnameVerification, a server compares the caller's address with the caller's
	// certificate; with ReverseDNS also the name that the DNS has for that address.
	HostnameVerification, ClientHostnameVerification, ReverseDNS bool

	// CRL demands that no certificate is revoked by the lists at CRLLocation, a file or a
	// directory. OCSP is not supported and refused.
	CRL, OCSP   bool
	CRLLocation string

	// Own reports why a certificate is not right for this server, such as for another host: others
	// then refuse it. A nil Own has no objections, as for clients, who may know this server by any
	// name.
	Own func(*x509.Certificate) error

	// Resolver answers for ReverseDNS; nil means that of the system.
	Resolver certhost.Resolver
}

// Defaults returns ZooKeeper's defaults of the keys with a prefix.
func Defaults(prefix string, role Role) Options {
	return Options{Prefix: prefix, Role: role, HostnameVerification: true, ClientHostnameVerification: role == Both}
}

// key returns the full name of a key for messages.
func (o *Options) key(name string) string {
	if name == crlLocation {
		return "gozkd." + o.Prefix + name
	}
	return o.Prefix + name
}

const crlLocation = "crlLocation"

// Check reports the first problem that can be seen without reading a file.
func (o *Options) Check() error {
	accepts, orNone := o.Role != Client, ""
	if o.Role == Server {
		orNone = ", or set " + o.key("clientAuth") + "=none"
	}
	switch {
	case accepts && o.KeyStore.Location == "":
		return fmt.Errorf("%s is not set: name a file with this server's key and certificate (JKS, PKCS12 or PEM)", o.key("keyStore.location"))
	case o.TrustStore.Location == "" && (o.Role == Both || accepts && o.clientAuth() != tls.NoClientCert):
		return fmt.Errorf("%s is not set, so no certificate of a caller could be verified: name a file with the authorities' certificates%s",
			o.key("trustStore.location"), orNone)
	case o.OCSP:
		return fmt.Errorf("%s=true is not supported: revocation is checked with lists; set %s=true and %s", o.key("ocsp"), o.key("crl"), o.key(crlLocation))
	case o.CRL && o.CRLLocation == "":
		return fmt.Errorf("%s=true, but %s is not set: name a file or a directory with the authorities' revocation lists", o.key("crl"), o.key(crlLocation))
	case o.CRL && o.TrustStore.Location == "":
		return fmt.Errorf("%s=true, but %s is not set: revocation lists are checked with the authorities' certificates", o.key("crl"), o.key("trustStore.location"))
	case !slices.Contains([]string{"", None, Want, Need}, strings.ToLower(o.ClientAuth)):
		return fmt.Errorf("%s is %q; allowed: none, want, need", o.key("clientAuth"), o.ClientAuth)
	}
	return errors.Join(o.KeyStore.check(o.key("keyStore.")), o.TrustStore.check(o.key("trustStore.")))
}

// clientAuth returns whether a server demands certificates of callers. Source: ZooKeeper's
// X509Util.ClientAuth.
func (o *Options) clientAuth() tls.ClientAuthType {
	switch strings.ToLower(o.ClientAuth) {
	case None:
		return tls.NoClientCert
	case Want:
		return tls.VerifyClientCertIfGiven
	}
	return tls.RequireAndVerifyClientCert
}

// protocol is the range of versions, and the cipher suites of TLS 1.2.
type protocol struct {
	min, max uint16
	suites   []uint16 // nil: Go's choice
	notes    []string // warnings for the operator
}

// versions are the names of Java. Source: "Java Security Standard Algorithm Names", SSLContext.
var versions = map[string]uint16{"TLSv1.2": tls.VersionTLS12, "TLSv1.3": tls.VersionTLS13}

// protocol resolves versions and cipher suites.
func (o *Options) protocol() (protocol, error) {
	p := protocol{min: tls.VersionTLS12, max: tls.VersionTLS13}
	names, key := o.EnabledProtocols, o.key("enabledProtocols")
	if len(names) == 0 && o.Protocol != "" && o.Protocol != "TLS" {
		names, key = []string{o.Protocol}, o.key("protocol")
	}
	if len(names) > 0 {
		p.min, p.max = tls.VersionTLS13, tls.VersionTLS12
	}
	for _, name := range names {
		v, ok := versions[name]
		if !ok {
			return p, fmt.Errorf("%s has %q; allowed: TLSv1.2, TLSv1.3", key, name)
		}
		p.min, p.max = min(p.min, v), max(p.max, v)
	}
	if len(o.CipherSuites) == 0 {
		return p, nil
	}
	return o.cipherSuites(p)
}

// cipherSuites narrows p to the configured cipher suites. Go uses all of its suites of TLS 1.3 or
// none, so a list without any of them, or with nothing else, narrows the versions.
func (o *Options) cipherSuites(p protocol) (protocol, error) {
	key := o.key("ciphersuites")
	var newer int // suites of TLS 1.3
	var unknown, weak []string
	for _, name := range o.CipherSuites {
		switch suite, secure := suiteOf(name); {
		case suite == nil:
			unknown = append(unknown, name)
		case slices.Contains(suite.SupportedVersions, tls.VersionTLS13):
			newer++
		default:
			p.suites = append(p.suites, suite.ID)
			if !secure {
				weak = append(weak, name)
			}
		}
	}
	if len(unknown) > 0 {
		p.notes = append(p.notes, fmt.Sprintf("%s: not supported, so not used: %s", key, strings.Join(unknown, ", ")))
	}
	if len(weak) > 0 {
		p.notes = append(p.notes, fmt.Sprintf("%s: weak, and used because the key names them: %s", key, strings.Join(weak, ", ")))
	}
	switch {
	case newer == 0:
		p.max = tls.VersionTLS12
	case newer < allNewer:
		p.notes = append(p.notes, key+": all cipher suites of TLS 1.3 are used, which have no known weakness")
	}
	if len(p.suites) == 0 {
		p.min = tls.VersionTLS13
	}
	if p.min > p.max {
		return p, fmt.Errorf("%s names no cipher suite that is supported by the enabled versions of TLS: use names such as TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 (TLS 1.2) or TLS_AES_128_GCM_SHA256 (TLS 1.3)", key)
	}
	return p, nil
}

// allNewer is the number of cipher suites of TLS 1.3.
const allNewer = 3

// suiteOf returns the suite with the IANA name, or nil. Suites that are broken, with RC4 or 3DES,
// are left out.
func suiteOf(name string) (suite *tls.CipherSuite, secure bool) {
	for _, s := range tls.CipherSuites() {
		if s.Name == name {
			return s, true
		}
	}
	for _, s := range tls.InsecureCipherSuites() {
		if s.Name == name && !strings.Contains(name, "RC4") && !strings.Contains(name, "3DES") {
			return s, false
		}
	}
	return nil, false
}
