package serverlist

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/proto"
)

// Set is the members of an ensemble, sorted by ID, no ID twice. The zero value has none: a standalone server. Sets
// are not changed in place, so they can be shared.
type Set []Member

// NewSet sorts members into a Set. It is an error if two have the same ID.
func NewSet(members ...Member) (Set, error) {
	s := Set(slices.SortedFunc(slices.Values(members), func(a, b Member) int { return cmp.Compare(a.ID, b.ID) }))
	for i := 1; i < len(s); i++ {
		if s[i].ID == s[i-1].ID {
			return nil, fmt.Errorf("members: %s stands there twice", s[i].Key())
		}
	}
	return s, nil
}

// ParseConfig reads the data of /zookeeper/config: server lines in any order, then version=<hex>. The version may
// be missing and is then 0. The empty text is that of a standalone server and gives the empty Set.
func ParseConfig(text string) (Set, proto.Zxid, error) {
	var list []Member
	var version proto.Zxid
	for key, value := range lines(text) {
		if key == "version" {
			v, err := parseVersion(value)
			if err != nil {
				return nil, 0, fmt.Errorf("members: version %q is not a hexadecimal number", value)
			}
			version = v
			continue
		}
		m, err := Parse(key, value)
		if err != nil {
			return nil, 0, err
		}
		list = append(list, m)
	}
	s, err := NewSet(list...)
	if err != nil {
		return nil, 0, err
	}
	return s, version, nil
}

// lines yields keys and values of a text whose lines are key=value. Blank lines and comments are left out, white
// space around keys and values too. A line without "=" is a key.
func lines(text string) func(yield func(key, value string) bool) {
	return func(yield func(key, value string) bool) {
		for line := range strings.SplitSeq(text, "\n") {
			line = strings.TrimSpace(line)
			if line == "" || line[0] == '#' || line[0] == '!' {
				continue
			}
			key, value, _ := strings.Cut(line, "=")
			if !yield(strings.TrimSpace(key), strings.TrimSpace(value)) {
				return
			}
		}
	}
}

// parseVersion reads the hexadecimal form of a zxid.
func parseVersion(s string) (proto.Zxid, error) {
	v, err := strconv.ParseUint(s, 16, 64)
	return proto.Zxid(v), err
}

// Text returns the data of /zookeeper/config: the lines, then the version, without a newline at the end.
func (s Set) Text(version proto.Zxid) string {
	var b strings.Builder
	for _, m := range s {
		b.WriteString(m.String())
		b.WriteByte('\n')
	}
	b.WriteString("version=")
	b.WriteString(strconv.FormatUint(uint64(version), 16))
	return b.String()
}

// Get returns the member with an id.
func (s Set) Get(id uint64) (Member, bool) {
	i, ok := slices.BinarySearchFunc(s, id, func(m Member, id uint64) int { return cmp.Compare(m.ID, id) })
	if !ok {
		return Member{}, false
	}
	return s[i], true
}

// With returns the set with m, in the place of the member with its ID if there is one.
func (s Set) With(m Member) Set {
	i, found := slices.BinarySearchFunc(s, m.ID, func(m Member, id uint64) int { return cmp.Compare(m.ID, id) })
	after := i
	if found {
		after++
	}
	return slices.Concat(s[:i], Set{m}, s[after:])
}

// Voters returns the ids of those who vote, rising. The caller owns the slice.
func (s Set) Voters() []uint64 { return s.with(Participant) }

// Observers returns the ids of those who do not, rising. The caller owns the slice.
func (s Set) Observers() []uint64 { return s.with(Observer) }

func (s Set) with(r Role) []uint64 {
	var ids []uint64
	for _, m := range s {
		if m.Role == r {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// Equal reports whether both have the same members with the same lines.
func (s Set) Equal(other Set) bool { return slices.Equal(s, other) }
