package datatree

import (
	"encoding/binary"
	"net/netip"

	"github.com/gozkd/gozkd/proto"
)

// acl is an access control list that is shared by all znodes that have it. All but refs is immutable.
// The open list, world:anyone:cdrwa, is the nil pointer.
type acl struct {
	key  string // the encoding, by which it stands in Tree.acls
	list []proto.ACL
	nets []netip.Prefix // of the ip entries, at their index; nil if there is none
	refs int            // znodes that have it; 0: not in Tree.acls
}

// acls returns the list, not to be changed.
func (a *acl) acls() []proto.ACL {
	if a == nil {
		return proto.OpenACL()
	}
	return a.list
}

// intern returns the shared form of a list that fixACL made. It copies all that it keeps.
func (t *Tree) intern(list []proto.ACL) *acl {
	if isOpen(list) {
		return nil
	}
	t.buf = appendACL(t.buf[:0], list)
	if a := t.acls[string(t.buf)]; a != nil {
		return a
	}
	return newACL(string(t.buf))
}

// isOpen reports whether list is world:anyone:cdrwa.
func isOpen(list []proto.ACL) bool {
	return len(list) == 1 && list[0] == proto.ACL{Perms: proto.PermAll, ID: proto.ID{Scheme: "world", ID: "anyone"}}
}

// newACL makes a list of its encoding, which is valid and not empty.
func newACL(key string) *acl {
	d := reader{b: []byte(key)}
	a := &acl{key: key, list: d.acl()}
	for i, entry := range a.list {
		if entry.ID.Scheme != "ip" {
			continue
		}
		if a.nets == nil {
			a.nets = make([]netip.Prefix, len(a.list))
		}
		// An address that does not parse leaves the zero prefix, which contains nothing. fixACL lets none through.
		a.nets[i], _ = parseNet(entry.ID.ID)
	}
	return a
}

// retain notes that one more znode has a.
func (t *Tree) retain(a *acl) {
	if a == nil {
		return
	}
	if a.refs == 0 {
		t.acls[a.key] = a
	}
	a.refs++
}

// release notes that one znode less has a.
func (t *Tree) release(a *acl) {
	if a == nil {
		return
	}
	if a.refs--; a.refs == 0 {
		delete(t.acls, a.key)
	}
}

// appendACL appends the encoding of a list; the open one is written as an empty list.
func appendACL(b []byte, list []proto.ACL) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for i := range list {
		b = binary.AppendVarint(b, int64(list[i].Perms))
		b = appendText(b, list[i].ID.Scheme)
		b = appendText(b, list[i].ID.ID)
	}
	return b
}

// acl reads what appendACL wrote.
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
