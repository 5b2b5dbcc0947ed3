package identity

import (
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/gozkd/gozkd/internal/x509name"
)

// CertificateID returns the subject of a certificate as ZooKeeper names it in the scheme x509:
// Java's form of RFC 2253, byte for byte. An empty subject is an error.
func CertificateID(cert *x509.Certificate) (string, error) {
	id, err := x509name.Of(cert.RawSubject)
	if err == nil && id == "" {
		err = errors.New("the certificate has an empty subject")
	}
	return id, err
}

// CertificateIDOf returns a function for X509.ID that takes the identity from this part of a
// certificate: "subject" or "" is CertificateID; "cn" is the common name; "san:uri", "san:dns" and
// "san:email" are the subject alternative name of that kind. A certificate without such a name, or
// with several, is an error: chance would decide which name counts.
func CertificateIDOf(part string) (func(*x509.Certificate) (string, error), error) {
	names, known := map[string]func(*x509.Certificate) []string{
		"cn":        commonNames,
		"san:uri":   uris,
		"san:dns":   func(cert *x509.Certificate) []string { return cert.DNSNames },
		"san:email": func(cert *x509.Certificate) []string { return cert.EmailAddresses },
	}[part]
	switch {
	case part == "", part == "subject":
		return CertificateID, nil
	case !known:
		return nil, fmt.Errorf("server: the identity of a certificate is %q, "+
			"allowed are subject, cn, san:uri, san:dns and san:email", part)
	}
	return func(cert *x509.Certificate) (string, error) {
		all := names(cert)
		if len(all) != 1 || all[0] == "" {
			return "", fmt.Errorf("the certificate has %d names of the kind %s, it must have 1 that is not empty", len(all), part)
		}
		return all[0], nil
	}, nil
}

func commonNames(cert *x509.Certificate) (all []string) {
	for _, a := range cert.Subject.Names {
		if text, ok := a.Value.(string); ok && a.Type.String() == "2.5.4.3" {
			all = append(all, text)
		}
	}
	return all
}

func uris(cert *x509.Certificate) (all []string) {
	for _, u := range cert.URIs {
		all = append(all, u.String())
	}
	return all
}
