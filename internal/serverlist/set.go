package serverlist

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/proto"
)

// Set holds the members of an ensemble, sorted by their numbers, which are unique. The zero value
// is empty: a standalone server. No method changes a Set in place, so a Set can be shared.
type Set []Member

// ParseConfig parses the data of /zookeeper/config: server lines in any order, and version=<hex>. A
// missing version is 0. The empty text of a standalone server gives the empty Set.
func ParseConfig(text string) (s Set, version proto.Zxid, err error) {
	for key, value := range Lines(text) {
		if key == "version" {
			if version, err = parseVersion(value); err != nil {
				return nil, 0, fmt.Errorf("members: version %q is not a hexadecimal number", value)
			}
			continue
		}
		m, err := Parse(key, value)
		if err != nil {
			return nil, 0, err
		}
		if _, is := s.Get(m.ID); is {
			return nil, 0, fmt.Errorf("members: there are two lines for %s: remove one of them", m.Key())
		}
		s = s.With(m)
	}
	return s, version, nil
}

// File is the content of the file members in a data directory.
type File struct {
	Configured Set // the members by the configuration of the directory's server
	Replicated Set // by the state
	Local      Set // with the addresses that the server uses
	Version    proto.Zxid
}

// ParseFile parses the file.
func ParseFile(text string) (f File, err error) {
	sections, sets := strings.Split(text, "\n\n"), []*Set{&f.Configured, &f.Replicated, &f.Local}
	if len(sections) != len(sets) {
		return File{}, fmt.Errorf("members: there are %d sections, not %d", len(sections), len(sets))
	}
	for i, section := range sections {
		set, version, err := ParseConfig(section)
		if err != nil {
			return File{}, err
		}
		*sets[i], f.Version = set, max(f.Version, version)
	}
	return f, nil
}

// String returns the text of the file.
func (f File) String() string {
	return strings.Join([]string{f.Configured.Text(0), f.Replicated.Text(f.Version), f.Local.Text(0)}, "\n\n")
}

// Lines yields the keys and values of a text of key=value lines, without surrounding white space.
// Blank lines and comments are skipped. A line without "=" is a key.
func Lines(text string) func(yield func(key, value string) bool) {
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

// parseVersion parses a zxid in hexadecimal.
func parseVersion(s string) (proto.Zxid, error) {
	v, err := strconv.ParseUint(s, 16, 64)
	return proto.Zxid(v), err
}

// Text returns the data of /zookeeper/config: the server lines, and the version without a newline.
func (s Set) Text(version proto.Zxid) string {
	text := ""
	for _, m := range s {
		text += m.String() + "\n"
	}
	return text + "version=" + strconv.FormatUint(uint64(version), 16)
}

func compare(m Member, id uint64) int { return cmp.Compare(memberid.Number(m.ID), memberid.Number(id)) }

// Get returns the member with an id.
func (s Set) Get(id uint64) (Member, bool) {
	i, ok := slices.BinarySearchFunc(s, id, compare)
	if !ok || s[i].ID != id { // no member has the id 0
		return Member{}, false
	}
	return s[i], true
}

// With returns the set with m, which replaces a member with the same ID.
func (s Set) With(m Member) Set {
	i, found := slices.BinarySearchFunc(s, m.ID, compare)
	after := i
	if found {
		after++
	}
	return slices.Concat(s[:i], Set{m}, s[after:])
}

// Voters returns the ids of the voting members in ascending order. The caller owns the slice.
func (s Set) Voters() []uint64 { return s.idsWith(Participant) }

// Observers returns the ids of the other members in ascending order. The caller owns the slice.
func (s Set) Observers() []uint64 { return s.idsWith(Observer) }

func (s Set) idsWith(r Role) []uint64 {
	var ids []uint64
	for _, m := range s {
		if m.Role == r {
			ids = append(ids, m.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// Equal reports whether both sets have the same lines.
func (s Set) Equal(other Set) bool { return slices.Equal(s, other) }
