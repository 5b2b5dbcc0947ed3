//go:build linux

package jepsenlite

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// authority issues the certificates of the members.
type authority struct {
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	serial int64
}

func newAuthority() (*authority, error) {
	a := &authority{}
	return a, must.Try(func() {
		template := &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
		var der []byte
		der, a.key = a.sign("members", template, nil)
		a.cert = must.Get(x509.ParseCertificate(der))
	})
}

// sign makes a key, and a certificate for it from a template, signed by the authority; by itself
// without a parent.
func (a *authority) sign(name string, template, parent *x509.Certificate) (der []byte, key *ecdsa.PrivateKey) {
	key = must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	a.serial++
	template.SerialNumber, template.Subject = big.NewInt(a.serial), pkix.Name{CommonName: name}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	if parent == nil {
		return must.Get(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)), key
	}
	return must.Get(x509.CreateCertificate(rand.Reader, template, parent, key.Public(), a.key)), key
}

// issue writes a new key and certificate of a member, atomically.
func (a *authority) issue(m *Member) error {
	return must.Try(func() {
		der, key := a.sign(m.String(), &x509.Certificate{
			DNSNames:    []string{hostName(m.ID)},
			URIs:        []*url.URL{{Scheme: "gozkd", Host: "jepsen", Path: fmt.Sprintf("/%d", m.ID)}},
			KeyUsage:    x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		}, a.cert)
		secret := must.Get(x509.MarshalPKCS8PrivateKey(key))
		text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
		must.Do(replaceFile(m.keyStore(), text))
	})
}

// trust writes the certificate of the authority.
func (a *authority) trust(m *Member) error {
	return replaceFile(m.trustStore(), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}))
}

func (m *Member) keyStore() string   { return filepath.Join(m.dir, "key.pem") }
func (m *Member) trustStore() string { return filepath.Join(m.dir, "ca.pem") }

// replaceFile writes a file atomically.
func replaceFile(path string, content []byte) error {
	return errors.Join(os.WriteFile(path+".new", content, 0o600), os.Rename(path+".new", path))
}
