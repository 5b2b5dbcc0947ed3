package agree

import (
	"cmp"
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

// divide returns the parts of a member, as kazoo divides them: both sorted, the members by identifier, and each n-th part from one's own place
// among n. Members with the same identifier have a place each, in the order of their names; kazoo's then want the first one's. None if it is no member.
func divide(parts, members []string, member string) []string {
	parts = slices.Sorted(slices.Values(parts))
	members = slices.SortedFunc(slices.Values(members), func(a, b string) int {
		return cmp.Or(cmp.Compare(identifierOf(a), identifierOf(b)), cmp.Compare(a, b))
	})
	i := slices.Index(members, member)
	if i < 0 {
		return nil
	}
	var own []string
	for ; i < len(parts); i += len(members) {
		own = append(own, parts[i])
	}
	return own
}
