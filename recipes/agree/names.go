package agree

import (
	"crypto/rand"
	"encoding/hex"
	"slices"
	"strings"
)

// The layout of kazoo's SetPartitioner: a ShallowParty and a directory of locks.
const (
	partyName = "party"
	locksName = "locks"
	lockLabel = "__lock__"
)

// newMember returns a name in the party: 32 hexadecimal digits, "-", and the identifier.
func newMember(identifier string) string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: the program ends if the system has no randomness
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return hex.EncodeToString(b[:]) + "-" + identifier
}

// identifierOf returns what comes after the first "-", all if there is none, as kazoo does.
func identifierOf(member string) string { return member[strings.IndexByte(member, '-')+1:] }

// divide returns the parts of identifier, as kazoo divides them: both sorted, and each n-th part from one's own place among n members. None if
// it is no member.
func divide(parts, members []string, identifier string) []string {
	parts, members = slices.Sorted(slices.Values(parts)), slices.Sorted(slices.Values(members))
	i := slices.Index(members, identifier)
	if i < 0 {
		return nil
	}
	var own []string
	for ; i < len(parts); i += len(members) {
		own = append(own, parts[i])
	}
	return own
}
