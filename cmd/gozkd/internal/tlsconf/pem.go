package tlsconf

import (
	"bytes"
	"crypto"
	"crypto/aes"
	"crypto/cipher"
	"crypto/pbkdf2"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"hash"
)

// parsePEM returns the first private key of text and the chain of its certificate, in whatever
// order they are in the text.
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
func pemKey(block *pem.Block, password string) (crypto.Signer, error) {
	var key any
	var err error
	switch block.Type {
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "RSA PRIVATE KEY", "EC PRIVATE KEY":
		if block.Headers["DEK-Info"] != "" {
			return nil, errors.New("its key is encrypted in an old format, which is weak: convert it with openssl pkcs8 -topk8 -in FILE -out NEWFILE")
		}
		if block.Type[0] == 'R' {
			key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
		} else {
			key, err = x509.ParseECPrivateKey(block.Bytes)
		}
	case "ENCRYPTED PRIVATE KEY":
		der, err := decryptPKCS8(block.Bytes, password)
		if err != nil {
			return nil, err
		}
		if key, err = x509.ParsePKCS8PrivateKey(der); err != nil {
			return nil, errPassword
		}
		return signer(key)
	default:
		return nil, nil
	}
	if err != nil {
		return nil, errors.New("its private key is damaged or of an unknown type") // NB: err may show a part of it
	}
	return signer(key)
}

// signer returns a key that certificates can have.
func signer(key any) (crypto.Signer, error) {
	if s, ok := key.(crypto.Signer); ok {
		return s, nil
	}
	return nil, fmt.Errorf("its private key is a %T, which cannot sign", key)
}

// pemCertificates returns all certificates of text.
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

// withChain returns key with its certificate among certs, followed by the issuers as far as certs
// has them.
func withChain(key crypto.Signer, certs []*x509.Certificate) (*tls.Certificate, error) {
	public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok {
		return nil, fmt.Errorf("its private key is a %T, which TLS does not use", key)
	}
	var leaf *x509.Certificate
	for _, c := range certs {
		if leaf == nil && public.Equal(c.PublicKey) {
			leaf = c
		}
	}
	if leaf == nil {
		return nil, fmt.Errorf("none of its %d certificates belongs to its private key", len(certs))
	}
	chain := &tls.Certificate{PrivateKey: key, Leaf: leaf, Certificate: [][]byte{leaf.Raw}}
	for last := leaf; last != nil && len(chain.Certificate) <= len(certs); {
		if last = issuer(last, certs); last != nil {
			chain.Certificate = append(chain.Certificate, last.Raw)
		}
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

// maxIterations bounds how often a password is hashed on behalf of a file: some seconds.
const maxIterations = 2_500_000

// The structures of RFC 5958 and RFC 8018.
type (
	encryptedKey struct {
		Algorithm pkix.AlgorithmIdentifier
		Data      []byte
	}
	pbes2 struct {
		KDF, Cipher pkix.AlgorithmIdentifier
	}
	kdf struct {
		Salt       []byte
		Iterations int
		KeyLength  int                      `asn1:"optional"`
		PRF        pkix.AlgorithmIdentifier `asn1:"optional"`
	}
)

var (
	oidPBES2  = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 5, 13}
	oidPBKDF2 = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 5, 12}
	// prfs are the hashes of PBKDF2; the default is SHA-1.
	prfs = map[string]func() hash.Hash{
		"":                    sha1.New,
		"1.2.840.113549.2.7":  sha1.New,
		"1.2.840.113549.2.9":  sha256.New,
		"1.2.840.113549.2.10": sha512.New384,
		"1.2.840.113549.2.11": sha512.New,
	}
	// keyLengths are the lengths of AES keys, in bytes, by the identifier of the cipher in CBC
	// mode.
	keyLengths = map[string]int{"2.16.840.1.101.3.4.1.2": 16, "2.16.840.1.101.3.4.1.22": 24, "2.16.840.1.101.3.4.1.42": 32}
)

// errCipher is returned for keys that are encrypted in another way.
var errCipher = errors.New("its key is encrypted in a way that is not supported, use PBES2 with AES: convert it with openssl pkcs8 -topk8 -v2 aes-256-cbc -in FILE -out NEWFILE")

// decryptPKCS8 decrypts a private key. A wrong password may go unnoticed and give a key that cannot
// be parsed.
func decryptPKCS8(der []byte, password string) ([]byte, error) {
	var sealed encryptedKey
	var scheme pbes2
	var derive kdf
	if rest, err := asn1.Unmarshal(der, &sealed); err != nil || len(rest) > 0 {
		return nil, errors.New("its private key is damaged")
	}
	if !sealed.Algorithm.Algorithm.Equal(oidPBES2) {
		return nil, errCipher
	}
	if _, err := asn1.Unmarshal(sealed.Algorithm.Parameters.FullBytes, &scheme); err != nil || !scheme.KDF.Algorithm.Equal(oidPBKDF2) {
		return nil, errCipher
	}
	if _, err := asn1.Unmarshal(scheme.KDF.Parameters.FullBytes, &derive); err != nil {
		return nil, errCipher
	}
	prf, size := prfs[derive.PRF.Algorithm.String()], keyLengths[scheme.Cipher.Algorithm.String()]
	iv := scheme.Cipher.Parameters.Bytes
	switch {
	case prf == nil || size == 0 || len(iv) != aes.BlockSize || len(sealed.Data) == 0 || len(sealed.Data)%aes.BlockSize != 0:
		return nil, errCipher
	case derive.Iterations < 1 || derive.Iterations > maxIterations:
		return nil, fmt.Errorf("its key is encrypted with %d iterations, allowed are %d", derive.Iterations, maxIterations)
	}
	key, err := pbkdf2.Key(prf, password, derive.Salt, derive.Iterations, size)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	plain := make([]byte, len(sealed.Data))
	cipher.NewCBCDecrypter(block, iv).CryptBlocks(plain, sealed.Data)
	padding := int(plain[len(plain)-1])
	if padding < 1 || padding > aes.BlockSize {
		return nil, errPassword
	}
	return plain[:len(plain)-padding], nil
}
