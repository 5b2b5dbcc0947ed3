package tlsconf

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"

	"software.sslmate.com/src/go-pkcs12"
)

// pkcs12Key returns the private key of a key store, and its chain.
func pkcs12Key(data []byte, password string) (*tls.Certificate, error) {
	if err := checkIterations(data); err != nil {
		return nil, err
	}
	key, cert, others, err := pkcs12.DecodeChain(data, password)
	switch {
	case errors.Is(err, pkcs12.ErrIncorrectPassword):
		return nil, errPassword
	case err != nil:
		return nil, fmt.Errorf("%w: a key store must hold one private key with its chain, copy it with keytool -importkeystore -srcalias ALIAS -deststoretype PKCS12", err)
	}
	return withChain(key, append([]*x509.Certificate{cert}, others...))
}

// pkcs12Trusted returns the certificates that are marked as trusted.
func pkcs12Trusted(data []byte, password string) ([]*x509.Certificate, error) {
	if err := checkIterations(data); err != nil {
		return nil, err
	}
	certs, err := pkcs12.DecodeTrustStore(data, password)
	switch {
	case errors.Is(err, pkcs12.ErrIncorrectPassword):
		return nil, errPassword
	case err != nil:
		return nil, fmt.Errorf("%w: a trust store must hold nothing but certificates that are marked as trusted, make one with keytool -importcert -trustcacerts -storetype PKCS12 -file CA.pem", err)
	}
	return certs, nil
}

// checkIterations bounds the time that a file can cost: it adds up all numbers of iterations that
// are in plain view. The others were authenticated with the password.
func checkIterations(data []byte) error {
	total, err := iterations(data, 0)
	if err == nil && total > maxIterations {
		err = fmt.Errorf("it demands more than %d iterations of hashing its password", maxIterations)
	}
	return err
}

// iterations returns the sum of all numbers of iterations in DER, also in octet strings that hold
// DER. In PKCS #12 and PKCS #5, each follows its salt: an INTEGER after an OCTET STRING.
func iterations(der []byte, depth int) (total int64, err error) {
	const deepest = 64
	if depth > deepest {
		return 0, errDamaged
	}
	salt := false
	for len(der) > 0 {
		var v asn1.RawValue
		rest, err := asn1.Unmarshal(der, &v)
		if err != nil {
			if depth == 0 {
				return 0, errDamaged
			}
			return total, nil // not DER, so nothing in it is parsed
		}
		der = rest
		switch {
		case salt && v.Class == asn1.ClassUniversal && v.Tag == asn1.TagInteger:
			var n int64
			if _, err := asn1.Unmarshal(v.FullBytes, &n); err != nil || n > maxIterations {
				n = maxIterations + 1
			}
			total += max(n, 0)
		case v.IsCompound || v.Tag == asn1.TagOctetString:
			inner, err := iterations(v.Bytes, depth+1)
			if err != nil {
				return 0, err
			}
			total += inner
		}
		if total > maxIterations {
			return total, nil
		}
		salt = v.Tag == asn1.TagOctetString // of any class: the library does not look at it
	}
	return total, nil
}
