package kerberos

import (
	"errors"
	"fmt"

	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/crypto/etype"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/types"
)

// keySizes maps the allowed encryption types to the sizes of their keys, in bytes. gokrb5's
// GetKeyByteSize is wrong for AES256_CTS_HMAC_SHA384_192.
var keySizes = map[int32]int{
	etypeID.AES128_CTS_HMAC_SHA1_96:    16,
	etypeID.AES256_CTS_HMAC_SHA1_96:    32,
	etypeID.AES128_CTS_HMAC_SHA256_128: 16,
	etypeID.AES256_CTS_HMAC_SHA384_192: 32,
}

// confounder is the number of random bytes at the beginning of each ciphertext of these types.
const confounder = 16

// key is a key of an allowed type and the right size.
type key struct {
	etype etype.EType
	bytes []byte
}

// newKey checks the type and the size of a key from a file, a ticket or a client.
func newKey(k types.EncryptionKey) (key, error) {
	size, ok := keySizes[k.KeyType]
	if !ok {
		return key{}, fmt.Errorf("kerberos: encryption type %d is not allowed; allowed are the AES types 17 to 20", k.KeyType)
	}
	if len(k.KeyValue) != size {
		return key{}, fmt.Errorf("kerberos: a key of encryption type %d has %d bytes, and not %d", k.KeyType, size, len(k.KeyValue))
	}
	et, err := crypto.GetEtype(k.KeyType)
	return key{et, k.KeyValue}, err
}

// mac returns how many bytes authenticate a message.
func (k key) mac() int { return k.etype.GetHMACBitLength() / 8 }

// decrypt checks and returns the text of a ciphertext. gokrb5 panics at short ciphertexts.
func (k key) decrypt(ciphertext []byte, usage uint32) ([]byte, error) {
	if len(ciphertext) < confounder+k.mac() {
		return nil, errors.New("kerberos: a ciphertext is too short")
	}
	return k.etype.DecryptMessage(k.bytes, ciphertext, usage)
}

func (k key) encrypt(text []byte, usage uint32) ([]byte, error) {
	_, ciphertext, err := k.etype.EncryptMessage(k.bytes, text, usage)
	return ciphertext, err
}
