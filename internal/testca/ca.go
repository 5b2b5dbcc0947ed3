package testca

import (
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/url"
	"testing"
	"time"
)

// Begin and End bound the validity of certificates unless the test says otherwise.
var (
	Begin = time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC)
	End   = time.Date(2190, 1, 1, 0, 0, 0, 0, time.UTC)
)

// Key is a type of key.
type Key int

// The types of keys. ECDSA on P-256 is the fastest to make. RSA has 2048 bits.
const (
	ECDSA Key = iota
	RSA
	Ed25519
)

// Spec describes a certificate. The zero Spec is a certificate of the subject CN=test for both
// sides of a connection, without names of hosts.
type Spec struct {
	// CN is the common name, which is the subject unless RawSubject is a subject in DER.
	CN         string
	RawSubject []byte

	// Hosts are host names, IP addresses and URIs for the subject alternative name.
	Hosts []string
	// Emails are e-mail addresses for the subject alternative name.
	Emails []string

	NotBefore, NotAfter time.Time
	Key                 Key
	// Usage is the extended key usage; nil means client and server.
	Usage []x509.ExtKeyUsage
}

// Cert is a certificate with its key and the authorities' certificates, without the root's.
type Cert struct {
	tls.Certificate // Leaf is set

	root *CA
}

// CA is a certificate authority.
type CA struct {
	*Cert // its own certificate

	parent *CA // nil for a root
}

// New returns a root of the subject CN=name.
func New(t testing.TB, name string) *CA {
	t.Helper()
	ca := &CA{}
	ca.Cert = issue(t, Spec{CN: name}, nil, true)
	ca.root = ca
	return ca
}

// Sub returns an authority that ca certifies.
func (ca *CA) Sub(t testing.TB, name string) *CA {
	t.Helper()
	return &CA{Cert: issue(t, Spec{CN: name}, ca, true), parent: ca}
}

// Issue returns a new certificate.
func (ca *CA) Issue(t testing.TB, s Spec) *Cert {
	t.Helper()
	return issue(t, s, ca, false)
}

// issue returns a certificate by ca, or by itself without ca.
func issue(t testing.TB, s Spec, ca *CA, authority bool) *Cert {
	t.Helper()
	key := newKey(t, s.Key)
	template := &x509.Certificate{
		RawSubject: s.RawSubject, NotBefore: s.NotBefore, NotAfter: s.NotAfter,
		EmailAddresses: s.Emails, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: s.Usage,
	}
	switch {
	case authority:
		template.IsCA, template.KeyUsage = true, x509.KeyUsageCertSign|x509.KeyUsageCRLSign
	case s.Usage == nil:
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	}
	if s.NotBefore.IsZero() {
		template.NotBefore = Begin
	}
	if s.NotAfter.IsZero() {
		template.NotAfter = End
	}
	template.Subject.CommonName = cmp.Or(s.CN, "test") // RawSubject counts instead
	for _, h := range s.Hosts {
		u, err := url.Parse(h)
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else if err == nil && u.Scheme != "" {
			template.URIs = append(template.URIs, u)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	c, parent, signer := &Cert{}, template, key
	if ca != nil {
		parent, signer, c.root = ca.Leaf, ca.PrivateKey.(crypto.Signer), ca.root
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	c.Certificate = tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	if c.Leaf, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	for ; ca != nil && ca.parent != nil; ca = ca.parent {
		c.Certificate.Certificate = append(c.Certificate.Certificate, ca.Leaf.Raw)
	}
	return c
}

func newKey(t testing.TB, k Key) crypto.Signer {
	t.Helper()
	var key crypto.Signer
	var err error
	switch k {
	case RSA:
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	case Ed25519:
		_, key, err = ed25519.GenerateKey(rand.Reader)
	default:
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// Pool returns a pool with the certificate of ca.
func (ca *CA) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(ca.Leaf)
	return pool
}

// Server returns the configuration of a server with this certificate, which demands certificates of
// the same root from its clients.
func (c *Cert) Server() *tls.Config {
	return &tls.Config{
		Certificates: []tls.Certificate{c.Certificate}, ClientCAs: c.root.Pool(),
		ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12,
	}
}

// Client returns the configuration of a client with this certificate, which expects a certificate
// of the same root. host is the name to verify; empty means the dialed host.
func (c *Cert) Client(host string) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{c.Certificate}, RootCAs: c.root.Pool(), ServerName: host, MinVersion: tls.VersionTLS12}
}

// CertPEM returns the certificate and those of the authorities below the root.
func (c *Cert) CertPEM() []byte {
	var out []byte
	for _, der := range c.Certificate.Certificate {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	return out
}

// KeyPEM returns the key as PKCS#8.
func (c *Cert) KeyPEM(t testing.TB) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}
