package tlsconf

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/internal/secretfile"
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

// check reports a store of a type that is not supported. The content tells the type, not the key:
// keytool makes PKCS12 by default, also if the file is called .jks. prefix begins its keys.
func (s *Store) check(prefix string) error {
	kind := strings.ToUpper(s.Type)
	if kind == "" && filepath.Ext(s.Location) == ".bcfks" {
		kind = typeBCFKS
	}
	switch {
	case s.Location == "":
		return nil
	case kind == typeBCFKS:
		return fmt.Errorf("%slocation: %s: BCFKS is not supported: convert it with keytool -importkeystore -deststoretype PKCS12", prefix, s.Location)
	case !slices.Contains([]string{"", typeJKS, typePKCS12, typePEM}, kind):
		return fmt.Errorf("%stype is %q; allowed: JKS, PKCS12, PEM", prefix, s.Type)
	}
	return nil
}

func kindOf(data []byte) (string, error) {
	switch {
	case len(data) == 0:
		return "", errors.New("it is empty")
	case bytes.HasPrefix(data, jksMagic):
		return typeJKS, nil
	case bytes.HasPrefix(data, []byte{0xce, 0xce, 0xce, 0xce}):
		return "", errors.New("it is a JCEKS file, which is not supported: convert it with keytool -importkeystore -deststoretype PKCS12")
	case bytes.Contains(data, []byte("-----BEGIN ")):
		return typePEM, nil
	case data[0] == 0x30: // a SEQUENCE
		return typePKCS12, nil
	}
	return "", errors.New("it is neither JKS nor PKCS12 nor PEM")
}

// password returns the password: the file without its last line end, or the text (SecretUtils).
func (s *Store) password(in *input) string {
	if s.PasswordFile == "" {
		return s.Password
	}
	text := in.data[s.PasswordFile]
	text = bytes.TrimSuffix(text, []byte("\n"))
	return string(bytes.TrimSuffix(text, []byte("\r")))
}

// loadKey returns the key and its chain. name is that of the store in messages.
func (s *Store) loadKey(in *input, name string) (cert *tls.Certificate, err error) {
	data := in.data[s.Location]
	kind, err := kindOf(data)
	switch kind {
	case typeJKS:
		cert, err = jksKey(in, name, data, s.password(in))
	case typePKCS12:
		cert, err = pkcs12Key(data, s.password(in))
	case typePEM:
		cert, err = parsePEM(slices.Concat(in.data[s.Key], []byte("\n"), data), s.password(in))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return cert, nil
}

// loadTrust returns the certificates of a trust store, at least one.
func (s *Store) loadTrust(in *input, prefix string) (certs []*x509.Certificate, err error) {
	data := in.data[s.Location]
	kind, err := kindOf(data)
	switch kind {
	case typeJKS:
		certs, err = jksTrusted(data, s.password(in))
	case typePKCS12:
		certs, err = pkcs12Trusted(data, s.password(in))
	case typePEM:
		certs, err = pemCertificates(data)
	}
	if err == nil && len(certs) == 0 {
		err = errors.New("it holds no certificate of an authority: add one with keytool -importcert -trustcacerts, or use a PEM file")
	}
	if err != nil {
		return nil, fmt.Errorf("%slocation: %s: %w", prefix, s.Location, err)
	}
	return certs, nil
}

// errPassword is returned for a store that the password does not open.
var errPassword = errors.New("the password is wrong, or the file is damaged: check the keys password and passwordPath of this store")

// input is the content of all files at an instant.
type input struct {
	data map[string][]byte // by path
	crls []string          // the paths of revocation lists
	warn []string
}

// read reads a file of at most limit bytes, and warns if others can read what must be secret.
func (in *input) read(f file, limit int64) error {
	data, shared, err := secretfile.Read(f.path, limit)
	if err != nil {
		return fmt.Errorf("%s: %w", f.key, err)
	}
	if shared != "" && (f.secret || plainKey.Match(data)) {
		in.warn = append(in.warn, f.key+": "+f.path+": "+shared)
	}
	in.data[f.path] = data
	return nil
}

// plainKey matches a private key in PEM format that is not encrypted.
var plainKey = regexp.MustCompile("-----BEGIN (RSA |EC )?PRIVATE KEY-----")
