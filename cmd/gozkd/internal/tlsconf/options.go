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

// Role is the side of connections that a configuration is for, which decides what stores it needs.
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

// Options are the ssl.* keys. A zero value is not always ZooKeeper's default: see Defaults.
type Options struct {
	// Prefix is the beginning of the keys in messages: "ssl." or "ssl.quorum.". Ports names the
	// ports that show the certificate.
	Prefix, Ports string
	Role          Role

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

	// Own reports why others would refuse a certificate of this server, such as one for another
	// host. A nil Own has no objections, as for clients, who may know it by any name.
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

// BareKey returns the full name of the key for Options.KeyStore.Key. prefix is Options.Prefix.
func BareKey(prefix string) string {
	return "gozkd." + strings.Replace(prefix, "ssl", "tls", 1) + "key"
}

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

// clientAuth returns whether callers need certificates. Source: ZooKeeper X509Util.ClientAuth.
func (o *Options) clientAuth() tls.ClientAuthType {
	switch strings.ToLower(o.ClientAuth) {
	case None:
		return tls.NoClientCert
	case Want:
		return tls.VerifyClientCertIfGiven
	}
	return tls.RequireAndVerifyClientCert
}
