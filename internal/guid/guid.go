// Package guid makes random UUIDs, for example in the names of znodes.
package guid

import (
	"crypto/rand"
	"fmt"
	"strings"
)

// New returns a random UUID (RFC 9562, version 4) in Java's notation.
func New() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: the program ends if the system has no randomness
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// NewHex returns a random UUID as 32 hexadecimal digits, as in kazoo.
func NewHex() string { return strings.ReplaceAll(New(), "-", "") }
