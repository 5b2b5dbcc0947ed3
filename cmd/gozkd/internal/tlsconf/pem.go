package tlsconf

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
)

// parsePEM returns the first private key and the chain of its certificate, in any order in text.
func parsePEM(text []byte, password string) (*tls.Certificate, error) {
	certs, err := pemCertificates(text)
	if err != nil {
		return nil, err
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		key, err := pemKey(block, password)
		if err != nil {
			return nil, err
		}
		if key != nil {
			return withChain(key, certs)
		}
	}
	return nil, errors.New("it holds no private key in PEM format")
}

// pemKey returns the private key in a block, or nil if the block holds something else.
func pemKey(block *pem.Block, password string) (key any, err error) {
	if block.Headers["DEK-Info"] != "" {
		return nil, errors.New("its key is encrypted in an old format, which is weak: convert it with openssl pkcs8 -topk8 -in FILE -out NEWFILE")
	}
	switch block.Type {
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	case "ENCRYPTED PRIVATE KEY":
		der, err := decryptPKCS8(block.Bytes, password)
		if err != nil {
			return nil, err
		}
		if key, err = x509.ParsePKCS8PrivateKey(der); err != nil {
			return nil, errPassword
		}
	default:
		return nil, nil
	}
	if err != nil {
		return nil, errors.New("its private key is damaged or of an unknown type") // NB: err may show a part of it
	}
	return key, nil
}

func pemCertificates(text []byte) (certs []*x509.Certificate, err error) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		switch block.Type {
		case "CERTIFICATE", "X509 CERTIFICATE", "TRUSTED CERTIFICATE":
			cert, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				return nil, fmt.Errorf("certificate %d: %w", len(certs)+1, err)
			}
			certs = append(certs, cert)
		}
	}
	return certs, nil
}

// withChain returns key with its certificate, followed by the issuers that certs has.
func withChain(key any, certs []*x509.Certificate) (*tls.Certificate, error) {
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("its private key is a %T, which cannot sign", key)
	}
	public, ok := signer.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok {
		return nil, fmt.Errorf("its private key is a %T, which TLS does not use", key)
	}
	i := slices.IndexFunc(certs, func(c *x509.Certificate) bool { return public.Equal(c.PublicKey) })
	if i < 0 {
		return nil, fmt.Errorf("none of its %d certificates belongs to its private key", len(certs))
	}
	chain := &tls.Certificate{PrivateKey: key, Leaf: certs[i], Certificate: [][]byte{certs[i].Raw}}
	for c := issuer(certs[i], certs); c != nil && len(chain.Certificate) <= len(certs); c = issuer(c, certs) {
		chain.Certificate = append(chain.Certificate, c.Raw)
	}
	return chain, nil
}

// issuer returns the certificate that c was signed with, or nil. A root has none.
func issuer(c *x509.Certificate, certs []*x509.Certificate) *x509.Certificate {
	if bytes.Equal(c.RawIssuer, c.RawSubject) {
		return nil
	}
	for _, other := range certs {
		if bytes.Equal(other.RawSubject, c.RawIssuer) && c.CheckSignatureFrom(other) == nil {
			return other
		}
	}
	return nil
}
