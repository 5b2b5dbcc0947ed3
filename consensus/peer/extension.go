package peer

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
)

const (
	// extensionMagic ends an extension.
	extensionMagic = "gozkdEXT"
	nonceBytes     = 16
	extensionBytes = 1 + nonceBytes + sha256.Size + len(extensionMagic)
)

// Flags of an extension.
const (
	flagAlways = 1 << 0
	flagSecret = 1 << 1 // the sender has the secret of the ensemble
)

// nonce is a random number that no connection has had before.
type nonce [nonceBytes]byte

func newNonce() (n nonce) {
	_, _ = rand.Read(n[:]) // does not fail
	return n
}

// extension is what this package adds to the end of a hello, of a challenge and of an accepting
// answer. A greeting without one decodes as the zero value, which proves nothing.
type extension struct {
	flags byte
	nonce nonce
	proof [sha256.Size]byte // in an answer after a challenge
}

func (e *extension) has(flag byte) bool { return e.flags&flag != 0 }

func (e *extension) append(b []byte) []byte {
	b = append(b, e.flags)
	b = append(b, e.nonce[:]...)
	b = append(b, e.proof[:]...)
	return append(b, extensionMagic...)
}

// splitExtension separates the content of a Handler from the extension after it.
func splitExtension(contents []byte) ([]byte, extension) {
	var e extension
	at := len(contents) - extensionBytes
	if at < 0 || !bytes.HasSuffix(contents, []byte(extensionMagic)) {
		return contents, e
	}
	e.flags = contents[at]
	copy(e.nonce[:], contents[at+1:])
	copy(e.proof[:], contents[at+1+nonceBytes:])
	return contents[:at:at], e
}

// Labels of the two proofs, so that neither can be used as the other.
const (
	labelCaller = "gozkd members 1: the caller knows the secret"
	labelCalled = "gozkd members 1: the called member knows the secret"
)

// proof returns the HMAC that shows knowledge of the secret. The messages of the hello that came
// before name both members, the ensemble and both nonces.
func proof(secret []byte, label string, messages ...[]byte) (sum [sha256.Size]byte) {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(label))
	for _, m := range messages {
		each := sha256.Sum256(m) // so that no two lists of messages are the same bytes
		mac.Write(each[:])
	}
	mac.Sum(sum[:0])
	return sum
}
