package tlsconf

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gozkd/gozkd/internal/neterr"
)

type revocationList struct {
	*x509.RevocationList
	path    string
	revoked map[string]bool // by serial number

	mu      sync.Mutex // guards signers
	signers map[[sha256.Size]byte]bool
}

// crlFiles returns the files at a location, a file or a directory. Hidden files are left out: in
// Kubernetes they are directories that the visible files point to.
func crlFiles(location string) (paths []string, err error) {
	info, err := os.Stat(location)
	if err != nil || !info.IsDir() {
		return []string{location}, err
	}
	entries, err := os.ReadDir(location)
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			paths = append(paths, filepath.Join(location, e.Name()))
		}
	}
	if err == nil && len(paths) == 0 {
		err = fmt.Errorf("%s holds no revocation list", location)
	}
	return paths, err
}

// loadCRLs parses the lists, by issuer, and verifies the signatures of trusted issuers, of others
// when they are used. key names the paths in errors and warnings.
func loadCRLs(key string, paths []string, in *input, trusted []*x509.Certificate) (map[string][]*revocationList, error) {
	lists := make(map[string][]*revocationList)
	for _, path := range paths {
		ders := crlBlocks(in.data[path])
		if len(ders) == 0 {
			return nil, fmt.Errorf("%s: %s: it holds no revocation list", key, path)
		}
		for _, der := range ders {
			list, err := parseCRL(der)
			if err == nil {
				err = list.checkTrusted(trusted)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", key, path, err)
			}
			list.path = path
			if late := time.Since(list.NextUpdate); late > 0 {
				in.warn = append(in.warn, fmt.Sprintf("%s: %s: out of date since %v: certificates of %s are refused until it is replaced",
					key, path, list.NextUpdate, list.Issuer))
			}
			lists[string(list.RawIssuer)] = append(lists[string(list.RawIssuer)], list)
		}
	}
	return lists, nil
}

// crlBlocks returns the lists in a file, in DER.
func crlBlocks(data []byte) (ders [][]byte) {
	if !bytes.Contains(data, []byte("-----BEGIN ")) && len(data) > 0 {
		return [][]byte{data}
	}
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "X509 CRL" {
			ders = append(ders, block.Bytes)
		}
	}
	return ders
}

// Extensions of revocation lists. Source: RFC 5280, section 5.2.
const (
	crlNumber    = "2.5.29.20"
	crlDelta     = "2.5.29.27"
	crlScope     = "2.5.29.28" // issuing distribution point
	authorityKey = "2.5.29.35"
)

func parseCRL(der []byte) (*revocationList, error) {
	parsed, err := x509.ParseRevocationList(der)
	if err != nil && strings.Contains(err.Error(), "unsupported crl version") {
		return nil, errors.New("it is a revocation list of version 1: make one of version 2, with openssl ca by setting crl_extensions in its configuration")
	}
	if err != nil {
		return nil, fmt.Errorf("it is not a revocation list: %w", err)
	}
	for _, e := range parsed.Extensions {
		// A delta or a partial list is marked so by an extension, which should be critical.
		if id := e.Id.String(); e.Critical && id != crlNumber && id != authorityKey || id == crlDelta || id == crlScope {
			return nil, fmt.Errorf("it is a partial revocation list (extension %v), which is not supported: use complete ones", e.Id)
		}
	}
	if parsed.NextUpdate.IsZero() {
		return nil, errors.New("it does not say until when it is valid, so an old one could not be told from the present one")
	}
	list := &revocationList{RevocationList: parsed, revoked: make(map[string]bool), signers: make(map[[sha256.Size]byte]bool)}
	for _, e := range parsed.RevokedCertificateEntries {
		list.revoked[string(e.SerialNumber.Bytes())] = true
	}
	return list, nil
}

// checkTrusted reports a list that claims a trusted issuer and was not signed by it.
func (l *revocationList) checkTrusted(trusted []*x509.Certificate) error {
	other := func(c *x509.Certificate) bool { return !bytes.Equal(c.RawSubject, l.RawIssuer) }
	named := slices.DeleteFunc(slices.Clone(trusted), other)
	if len(named) == 0 || slices.ContainsFunc(named, l.signedBy) {
		return nil
	}
	return fmt.Errorf("its signature is not that of %s, or that certificate may not sign revocation lists", l.Issuer)
}

// signedBy reports whether the list was signed by an authority. The answer is kept.
func (l *revocationList) signedBy(authority *x509.Certificate) bool {
	id := sha256.Sum256(authority.Raw)
	l.mu.Lock()
	defer l.mu.Unlock()
	signed, known := l.signers[id]
	if !known {
		signed = l.CheckSignatureFrom(authority) == nil
		l.signers[id] = signed
	}
	return signed
}

// checkRevoked demands a chain without revoked certificates whose authorities have current lists.
func (c *content) checkRevoked(chains [][]*x509.Certificate) error {
	if !c.options.CRL {
		return nil
	}
	var first error
	for _, chain := range chains {
		err := c.checkChain(chain)
		if err == nil {
			return nil
		}
		first = cmp.Or(first, err)
	}
	return cmp.Or(first, error(&refusal{neterr.NoRevocation, "the certificate has no verified chain"}))
}

func (c *content) checkChain(chain []*x509.Certificate) error {
	now := time.Now()
	for i, cert := range chain[:len(chain)-1] { // the last is trusted itself
		lists := slices.DeleteFunc(slices.Clone(c.crls[string(cert.RawIssuer)]), func(l *revocationList) bool { return !l.signedBy(chain[i+1]) })
		current := false
		for _, l := range lists {
			if l.revoked[string(cert.SerialNumber.Bytes())] {
				return &refusal{neterr.Revoked, fmt.Sprintf("the certificate of %s is revoked by %s", cert.Subject, l.path)}
			}
			current = current || !now.Before(l.ThisUpdate) && now.Before(l.NextUpdate)
		}
		if !current {
			return &refusal{neterr.NoRevocation, fmt.Sprintf("%s has no revocation list of %s that is up to date, so its certificates cannot be accepted", c.options.CRLLocation, cert.Issuer)}
		}
	}
	return nil
}
