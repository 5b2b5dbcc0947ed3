package agree

import (
	"cmp"
	"slices"
	"strings"
)

// The layout of kazoo's SetPartitioner: a ShallowParty and a directory of locks.
const (
	partyName = "party"
	locksName = "locks"
	lockLabel = "__lock__"
)

// identifierOf returns the part of a member's name after the first "-", or the whole name if there
// is none, as kazoo does.
func identifierOf(member string) string { return member[strings.IndexByte(member, '-')+1:] }

// divide returns the parts of a member, none if members lacks the member. The division is kazoo's:
// both lists are sorted, members by identifier, and the i-th of n members gets the parts i, i+n,
// i+2n ... Members with the same identifier are sorted by name, so each gets parts of its own; in
// kazoo all of them want the parts of the first.
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
