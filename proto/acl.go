package proto

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/proto/jute"
)

// Perms is a set of permission bits. Unknown bits are kept as sent.
type Perms int32

// The permissions.
const (
	PermRead   Perms = 1
	PermWrite  Perms = 2
	PermCreate Perms = 4
	PermDelete Perms = 8
	PermAdmin  Perms = 16
	PermAll    Perms = 31
)

// permLetters are the letters of the permissions, from the lowest bit.
const permLetters = "rwcda"

// Letters returns letters of cdrwa, in this order, which is ZooKeeper's. Unknown bits have none.
func (p Perms) Letters() string {
	b := make([]byte, 0, len(permLetters))
	for _, letter := range []byte("cdrwa") {
		if p>>strings.IndexByte(permLetters, letter)&1 != 0 {
			b = append(b, letter)
		}
	}
	return string(b)
}

// ParsePerms reads letters of cdrwa.
func ParsePerms(letters string) (p Perms, err error) {
	for _, letter := range letters {
		bit := strings.IndexRune(permLetters, letter)
		if bit < 0 {
			return 0, fmt.Errorf("permissions %q: must be letters of cdrwa", letters)
		}
		p |= 1 << bit
	}
	return p, nil
}

// ID is an identity under an authentication scheme.
type ID struct{ Scheme, ID string }

// User returns the id without the hash of a password. What is logged, or shown to others than the
// administrators of a znode, must be User or Shown.
func (i ID) User() string {
	if i.Scheme != "digest" {
		return i.ID
	}
	user, _, _ := strings.Cut(i.ID, ":")
	return user
}

// Shown returns scheme:user, without the hash of a password.
func (i ID) Shown() string { return i.Scheme + ":" + i.User() }

// Schemes of identities that only ACLs are compared with: they belong to a client beside its
// identity of scheme sasl. Source: SASLAuthenticationProvider.matches.
const (
	// SchemeSASLAll is the identity of the user super, who is granted what any sasl entry grants.
	SchemeSASLAll = "sasl-all"
	// SchemeSASLAny is an identity of every user where letAnySaslUserDoX is set: its id is granted
	// what the entry of scheme sasl with that id grants.
	SchemeSASLAny = "sasl-any"
)

// ShownIDs returns identities without those that only ACLs are compared with, which are not for
// others to see.
func ShownIDs(ids []ID) []ID {
	hidden := func(id ID) bool { return id.Scheme == SchemeSASLAll || id.Scheme == SchemeSASLAny }
	if !slices.ContainsFunc(ids, hidden) {
		return ids
	}
	return slices.DeleteFunc(slices.Clone(ids), hidden)
}

// ACL is an entry of a znode's access control list.
type ACL struct {
	Perms Perms
	ID    ID
}

// OpenACL returns world:anyone:cdrwa.
func OpenACL() []ACL { return []ACL{{PermAll, ID{"world", "anyone"}}} }

// ReadACL returns world:anyone:r.
func ReadACL() []ACL { return []ACL{{PermRead, ID{"world", "anyone"}}} }

// Append appends the encoding.
func (i *ID) Append(b []byte) []byte { return jute.AppendString(jute.AppendString(b, i.Scheme), i.ID) }

// Decode reads the record. A null scheme or id is read as "".
func (i *ID) Decode(d *jute.Decoder) { i.Scheme, i.ID = d.String(), d.String() }

// Append appends the encoding.
func (a *ACL) Append(b []byte) []byte { return a.ID.Append(jute.AppendInt(b, int32(a.Perms))) }

// Decode reads the record.
func (a *ACL) Decode(d *jute.Decoder) {
	a.Perms = Perms(d.Int())
	a.ID.Decode(d)
}

// AppendACLs appends a vector; nil is null.
func AppendACLs(b []byte, v []ACL) []byte {
	if v == nil {
		return jute.AppendInt(b, -1)
	}
	b = jute.AppendInt(b, int32(len(v)))
	for i := range v {
		b = v[i].Append(b)
	}
	return b
}

// DecodeACLs reads a vector; null is nil.
func DecodeACLs(d *jute.Decoder) []ACL {
	n := d.Count(12)
	if n < 0 {
		return nil
	}
	v := make([]ACL, n)
	for i := range v {
		v[i].Decode(d)
	}
	return v
}
