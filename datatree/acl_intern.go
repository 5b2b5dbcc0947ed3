package datatree

import (
	"encoding/binary"
	"net/netip"
	"strings"

	"github.com/gozkd/gozkd/proto"
)

// acl is an access control list, shared by all znodes that have it. Everything except refs is
// immutable. The nil pointer is the open list, world:anyone:cdrwa.
type acl struct {
	key  string // the encoding, its key in aclTable.numbers
	list []proto.ACL
	nets []netip.Prefix           // of ip entries, by index; nil if there are none
	byID map[proto.ID]proto.Perms // granted by entries other than ip; nil if the list is short
	// anyone is granted to everybody.
	anyone proto.Perms
	refs   int // number of znodes; 0: not in the table
}

// acls returns the list, which must not be changed.
func (a *acl) acls() []proto.ACL {
	if a == nil {
		return proto.OpenACL()
	}
	return a.list
}

// aclTable numbers the lists of the znodes. 0 is the open list.
type aclTable struct {
	numbers map[string]uint32 // by encoding, without the open list
	lists   []*acl            // by number less 1; nil: free
	free    []uint32
}

func (a *aclTable) at(number uint32) *acl {
	if number == 0 {
		return nil
	}
	return a.lists[number-1]
}

func (a *aclTable) key(number uint32) string {
	if number == 0 {
		return ""
	}
	return a.lists[number-1].key
}

// retain adds a reference to the list with that encoding and returns its number.
func (a *aclTable) retain(key string) uint32 {
	if key == "" {
		return 0
	}
	number, ok := a.numbers[key]
	if !ok {
		fresh := newACL(strings.Clone(key))
		if last := len(a.free) - 1; last >= 0 {
			number, a.free = a.free[last], a.free[:last]
		} else {
			a.lists = append(a.lists, nil)
			number = uint32(len(a.lists))
		}
		a.lists[number-1] = fresh
		a.numbers[fresh.key] = number
	}
	a.lists[number-1].refs++
	return number
}

func (a *aclTable) release(number uint32) {
	if number == 0 {
		return
	}
	list := a.lists[number-1]
	if list.refs--; list.refs > 0 {
		return
	}
	delete(a.numbers, list.key)
	a.lists[number-1] = nil
	a.free = append(a.free, number)
	if len(a.numbers) == 0 {
		a.lists, a.free = nil, nil
	}
}

// aclKey returns the encoding of a list from fixACL, for a record.
func (s *znodeStore) aclKey(list []proto.ACL) string {
	if isOpen(list) {
		return ""
	}
	s.buf = appendACL(s.buf[:0], list)
	if number, ok := s.acls.numbers[string(s.buf)]; ok {
		return s.acls.key(number)
	}
	return string(s.buf)
}

func isOpen(list []proto.ACL) bool {
	return len(list) == 1 && list[0] == proto.ACL{Perms: proto.PermAll, ID: proto.ID{Scheme: "world", ID: "anyone"}}
}

// shortACL is up to how many entries a list has no index.
const shortACL = 16

// newACL decodes a list whose encoding is valid and not empty.
func newACL(key string) *acl {
	d := reader{b: []byte(key)}
	a := &acl{key: key, list: d.acl()}
	if len(a.list) > shortACL {
		a.byID = make(map[proto.ID]proto.Perms)
	}
	for i, entry := range a.list {
		switch {
		case entry.ID.Scheme == "world" && entry.ID.ID == "anyone":
			a.anyone |= entry.Perms
		case entry.ID.Scheme != "ip" && a.byID != nil:
			a.byID[entry.ID] |= entry.Perms
		}
		if entry.ID.Scheme != "ip" {
			continue
		}
		if a.nets == nil {
			a.nets = make([]netip.Prefix, len(a.list))
		}
		// An invalid address leaves the zero prefix, which contains nothing. fixACL never lets an
		// invalid address pass.
		a.nets[i], _ = parseNet(entry.ID.ID)
	}
	return a
}

// appendACL appends the encoding of a list. The open list is encoded like an empty list.
func appendACL(b []byte, list []proto.ACL) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for i := range list {
		b = binary.AppendVarint(b, int64(list[i].Perms))
		b = appendText(b, list[i].ID.Scheme)
		b = appendText(b, list[i].ID.ID)
	}
	return b
}

func (d *reader) acl() []proto.ACL {
	n := d.count(3)
	if n == 0 {
		return nil
	}
	list := make([]proto.ACL, n)
	for i := range list {
		list[i].Perms = proto.Perms(d.int32())
		list[i].ID.Scheme, list[i].ID.ID = d.text(), d.text()
	}
	return list
}
