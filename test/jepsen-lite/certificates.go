//go:build linux

package jepsenlite

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// authority issues the certificates of the members.
type authority struct {
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	serial int64
}

func newAuthority() (*authority, error) {
	a := &authority{}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, fmt.Errorf("jepsenlite: %w", err)
	}
	template := a.template("members")
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("jepsenlite: %w", err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, fmt.Errorf("jepsenlite: %w", err)
	}
	return a, nil
}

func (a *authority) template(name string) *x509.Certificate {
	a.serial++
	return &x509.Certificate{
		SerialNumber: big.NewInt(a.serial), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
}

// issue writes a new key and certificate of a member, atomically.
func (a *authority) issue(m *Member) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("jepsenlite: %w", err)
	}
	template := a.template(m.String())
	template.DNSNames = []string{hostName(m.ID)}
	template.URIs = []*url.URL{{Scheme: "gozkd", Host: "jepsen", Path: fmt.Sprintf("/%d", m.ID)}}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return fmt.Errorf("jepsenlite: %w", err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("jepsenlite: %w", err)
	}
	var b bytes.Buffer
	// Writing to a buffer does not fail.
	_ = pem.Encode(&b, &pem.Block{Type: "PRIVATE KEY", Bytes: secret})
	_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: der})
	return replaceFile(m.keyStore(), b.Bytes())
}

// trust writes the certificate of the authority.
func (a *authority) trust(m *Member) error {
	return replaceFile(m.trustStore(), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}))
}

func (m *Member) keyStore() string   { return filepath.Join(m.dir, "key.pem") }
func (m *Member) trustStore() string { return filepath.Join(m.dir, "ca.pem") }

// replaceFile writes a file atomically.
func replaceFile(path string, content []byte) error {
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		return fmt.Errorf("jepsenlite: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("jepsenlite: %w", err)
	}
	return nil
}
