package tlsconf

import (
	"bytes"
	"crypto/sha1"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"

	"golang.org/x/crypto/cryptobyte"
	"software.sslmate.com/src/go-pkcs12"
)

// A JKS file is a magic number, a version, and entries, followed by a SHA-1 digest of all that and
// the password. Source: OpenJDK's sun.security.provider.JavaKeyStore and KeyProtector.

var (
	jksMagic = []byte{0xfe, 0xed, 0xfe, 0xed}
	// oidJKS says that a key is encrypted as KeyProtector does.
	oidJKS = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 42, 2, 17, 1, 1}
)

// jksEntry is a private key with its chain, or, without a key, a trusted certificate.
type jksEntry struct {
	alias string
	key   []byte // encrypted
	certs []*x509.Certificate
}

// readLong reads bytes with their length in 4 bytes before them.
func readLong(file *cryptobyte.String, field *[]byte) bool {
	var n uint32
	return file.ReadUint32(&n) && n < 1<<30 && file.ReadBytes(field, int(n))
}

var errDamaged = errors.New("it is damaged")

// jksEntries returns the entries, in the order of the file, after verifying the digest.
func jksEntries(data []byte, password string) (entries []jksEntry, err error) {
	if len(data) < len(jksMagic)+sha1.Size {
		return nil, errDamaged
	}
	body, digest := data[:len(data)-sha1.Size], data[len(data)-sha1.Size:]
	sum := sha1.Sum(slices.Concat(javaPassword(password), []byte("Mighty Aphrodite"), body))
	if subtle.ConstantTimeCompare(sum[:], digest) != 1 {
		return nil, errPassword
	}
	file := cryptobyte.String(body[len(jksMagic):])
	var version, count, tag uint32
	if !file.ReadUint32(&version) || !file.ReadUint32(&count) || version != 1 && version != 2 {
		return nil, errDamaged
	}
	for range count {
		var e jksEntry
		var text cryptobyte.String
		ok := file.ReadUint32(&tag) && file.ReadUint16LengthPrefixed(&text) && file.Skip(8) // the time of its creation
		e.alias = string(text)
		certs := uint32(1)
		if tag == 1 {
			ok = ok && readLong(&file, &e.key) && file.ReadUint32(&certs)
		}
		for ok = ok && (tag == 1 || tag == 2); ok && certs > 0; certs-- {
			var der []byte
			// files of version 2 name the type of a certificate
			if ok = (version == 1 || file.ReadUint16LengthPrefixed(&text)) && readLong(&file, &der); ok {
				cert, err := x509.ParseCertificate(der)
				if err != nil {
					return nil, fmt.Errorf("entry %q: %w", e.alias, err)
				}
				e.certs = append(e.certs, cert)
			}
		}
		if !ok {
			return nil, errDamaged
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// jksKey returns the private key of a key store. If there are several, it takes the one with the
// first alias in alphabetical order, and says so.
func jksKey(in *input, data []byte, password string) (*tls.Certificate, error) {
	entries, err := jksEntries(data, password)
	if err != nil {
		return nil, err
	}
	entries = slices.DeleteFunc(entries, func(e jksEntry) bool { return e.key == nil })
	if len(entries) == 0 {
		return nil, errors.New("it holds no private key")
	}
	slices.SortFunc(entries, func(a, b jksEntry) int { return strings.Compare(a.alias, b.alias) })
	first := entries[0]
	if len(entries) > 1 {
		in.warn = append(in.warn, fmt.Sprintf("the key store holds %d private keys, of which %q is used", len(entries), first.alias))
	}
	der, err := jksDecrypt(first.key, password)
	if err != nil {
		return nil, fmt.Errorf("entry %q: %w", first.alias, err)
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("entry %q: its private key is damaged or of an unknown type", first.alias)
	}
	s, err := signer(key)
	if err != nil {
		return nil, err
	}
	return withChain(s, first.certs)
}

// jksTrusted returns the trusted certificates. As in Java, the chains of private keys are none.
func jksTrusted(data []byte, password string) (certs []*x509.Certificate, err error) {
	entries, err := jksEntries(data, password)
	for _, e := range entries {
		if e.key == nil {
			certs = append(certs, e.certs...)
		}
	}
	return certs, err
}

// jksDecrypt decrypts a private key: its bytes are combined with a chain of SHA-1 digests of the
// password that begins with a salt, and followed by a digest of the password and the key.
func jksDecrypt(sealed []byte, password string) ([]byte, error) {
	var info encryptedKey
	if rest, err := asn1.Unmarshal(sealed, &info); err != nil || len(rest) > 0 || !info.Algorithm.Algorithm.Equal(oidJKS) || len(info.Data) < 2*sha1.Size {
		return nil, errDamaged
	}
	secret := javaPassword(password)
	digest, text := info.Data[:sha1.Size], info.Data[sha1.Size:len(info.Data)-sha1.Size]
	plain := make([]byte, 0, len(text))
	for i, b := range text {
		if i%sha1.Size == 0 {
			sum := sha1.Sum(slices.Concat(secret, digest))
			digest = sum[:]
		}
		plain = append(plain, b^digest[i%sha1.Size])
	}
	sum := sha1.Sum(slices.Concat(secret, plain))
	if !bytes.Equal(sum[:], info.Data[len(info.Data)-sha1.Size:]) {
		return nil, errors.New("the password of the key differs from that of the store: make them equal with keytool -keypasswd")
	}
	return plain, nil
}

// javaPassword returns the password as Java's characters.
func javaPassword(password string) (b []byte) {
	for _, u := range utf16.Encode([]rune(password)) {
		b = binary.BigEndian.AppendUint16(b, u)
	}
	return b
}

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
	s, err := signer(key)
	if err != nil {
		return nil, err
	}
	return withChain(s, append([]*x509.Certificate{cert}, others...))
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
