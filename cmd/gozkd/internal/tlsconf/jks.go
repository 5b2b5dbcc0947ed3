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
	"sort"
	"unicode/utf16"

	"golang.org/x/crypto/cryptobyte"
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
// first alias in alphabetical order, and says so. name is that of the store in warnings.
func jksKey(in *input, name string, data []byte, password string) (*tls.Certificate, error) {
	entries, err := jksEntries(data, password)
	if err != nil {
		return nil, err
	}
	entries = slices.DeleteFunc(entries, func(e jksEntry) bool { return e.key == nil })
	if len(entries) == 0 {
		return nil, errors.New("it holds no private key")
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].alias < entries[j].alias })
	first := entries[0]
	if len(entries) > 1 {
		in.warn = append(in.warn,
			fmt.Sprintf("%s: it holds %d private keys, of which %q is used", name, len(entries), first.alias))
	}
	der, err := jksDecrypt(first.key, password)
	if err != nil {
		return nil, fmt.Errorf("entry %q: %w", first.alias, err)
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("entry %q: its private key is damaged or of an unknown type", first.alias)
	}
	return withChain(key, first.certs)
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
