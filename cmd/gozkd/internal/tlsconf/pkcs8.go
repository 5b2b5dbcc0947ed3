package tlsconf

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/pbkdf2"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"hash"
)

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
	// keyLengths are those of AES keys in bytes, by the identifier of the cipher in CBC mode.
	keyLengths = map[string]int{"2.16.840.1.101.3.4.1.2": 16, "2.16.840.1.101.3.4.1.22": 24, "2.16.840.1.101.3.4.1.42": 32}
)

// errCipher is returned for keys that are encrypted in another way.
var errCipher = errors.New("its key is encrypted in a way that is not supported, use PBES2 with AES: convert it with openssl pkcs8 -topk8 -v2 aes-256-cbc -in FILE -out NEWFILE")

// decryptPKCS8 decrypts a private key. A wrong password may give one that cannot be parsed.
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
