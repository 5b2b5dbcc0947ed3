package tlsconf

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// maxStore bounds the files of keys, certificates and passwords, in bytes.
	maxStore = 4 << 20
	// maxCRL bounds a revocation list.
	maxCRL = 64 << 20
)

// The types of stores.
const (
	typeJKS    = "JKS"
	typePKCS12 = "PKCS12"
	typePEM    = "PEM"
	typeBCFKS  = "BCFKS"
)

// kind returns the type of the store. Source: ZooKeeper's KeyStoreFileType.
func (s *Store) kind() string {
	if s.Type != "" {
		return strings.ToUpper(s.Type)
	}
	switch filepath.Ext(s.Location) {
	case ".jks":
		return typeJKS
	case ".p12", ".pfx":
		return typePKCS12
	case ".pem", ".crt", ".key", ".cer":
		return typePEM
	case ".bcfks":
		return typeBCFKS
	}
	return ""
}

// check reports a store whose type is unknown. prefix is the beginning of its keys.
func (s *Store) check(prefix string) error {
	switch kind := s.kind(); {
	case s.Location == "":
		return nil
	case kind == typeBCFKS:
		return fmt.Errorf("%slocation: %s: BCFKS is not supported: convert it with keytool -importkeystore -deststoretype PKCS12", prefix, s.Location)
	case kind == "":
		return fmt.Errorf("%slocation: %s: its extension is not .jks, .p12 or .pem: set %stype to JKS, PKCS12 or PEM", prefix, s.Location, prefix)
	case !slices.Contains([]string{typeJKS, typePKCS12, typePEM}, kind):
		return fmt.Errorf("%stype is %q; allowed: JKS, PKCS12, PEM", prefix, s.Type)
	}
	return nil
}

// files returns the files that the store is made of.
func (s *Store) files() (paths []string) {
	for _, path := range []string{s.Location, s.Key, s.PasswordFile} {
		if path != "" && s.Location != "" {
			paths = append(paths, path)
		}
	}
	return paths
}

// password returns the password: the content of the file without its last line separator, or the
// configured text. Source: ZooKeeper's SecretUtils.
func (s *Store) password(in *input) string {
	if s.PasswordFile == "" {
		return s.Password
	}
	text := in.data[s.PasswordFile]
	text = bytes.TrimSuffix(text, []byte("\n"))
	return string(bytes.TrimSuffix(text, []byte("\r")))
}

// loadKey returns the key and its chain. prefix is the beginning of the store's keys.
func (s *Store) loadKey(in *input, prefix string) (*tls.Certificate, error) {
	cert, err := s.parseKey(in)
	if err != nil {
		return nil, fmt.Errorf("%slocation: %s: %w", prefix, s.Location, err)
	}
	return cert, nil
}

func (s *Store) parseKey(in *input) (*tls.Certificate, error) {
	data := in.data[s.Location]
	switch s.kind() {
	case typePEM:
		return parsePEM(slices.Concat(in.data[s.Key], []byte("\n"), data), s.password(in))
	}
	return nil, errors.New("not supported yet")
}

// loadTrust returns the certificates of a trust store, at least one.
func (s *Store) loadTrust(in *input, prefix string) ([]*x509.Certificate, error) {
	certs, err := s.parseTrust(in)
	if err == nil && len(certs) == 0 {
		err = errors.New("it holds no certificate of an authority: add one with keytool -importcert -trustcacerts, or use a PEM file")
	}
	if err != nil {
		return nil, fmt.Errorf("%slocation: %s: %w", prefix, s.Location, err)
	}
	return certs, nil
}

func (s *Store) parseTrust(in *input) ([]*x509.Certificate, error) {
	switch s.kind() {
	case typePEM:
		return pemCertificates(in.data[s.Location])
	}
	return nil, errors.New("not supported yet")
}

// input is the content of all files at an instant.
type input struct {
	data map[string][]byte // by path
	warn []string
}

// read reads a file of at most limit bytes.
func (in *input) read(path string, limit int64) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	switch {
	case err != nil:
		return err
	case int64(len(data)) > limit:
		return fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	in.data[path] = data
	return nil
}
