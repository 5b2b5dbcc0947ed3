package datatree

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/proto"
)

// ACLRef is a handle to an immutable access control list and stays valid. Its zero value is the
// open list, world:anyone:cdrwa.
type ACLRef struct{ acl *acl }

// Encoding returns the list in bytes, for DecodeACL. That of the open list is empty.
func (r ACLRef) Encoding() string {
	if r.acl == nil {
		return ""
	}
	return r.acl.key
}

// DecodeACL returns the list of an Encoding.
func DecodeACL(encoding []byte) ACLRef {
	if len(encoding) == 0 {
		return ACLRef{}
	}
	return ACLRef{newACL(string(encoding))}
}

// Caller is the reader that a read is checked for.
type Caller struct {
	IDs     []proto.ID
	SkipACL bool       // no check is made
	Known   *Decisions // remembers earlier decisions for IDs; nil: nothing is remembered
}

// Readable reports whether c may read a znode with this list.
func (s *znodeStore) Readable(ref ACLRef, c Caller) bool { return c.may(proto.PermRead, ref.acl) }

// ReadableNow reports whether c may read the znode at path, and whether there is one.
func (s *znodeStore) ReadableNow(path string, c Caller) (readable, exists bool) {
	n := s.get(path)
	return n != nil && c.may(proto.PermRead, s.aclOf(n)), n != nil
}

// Granted reports whether the list of the znode at path names ids with all of the wanted
// permissions. What the list gives to everybody, world:anyone, does not count. Without a znode the
// answer is no.
func (s *znodeStore) Granted(path string, want proto.Perms, ids []proto.ID) bool {
	n := s.get(path)
	if n == nil || s.aclOf(n) == nil { // nil is world:anyone:cdrwa
		return false
	}
	var once Decisions
	return want&^once.named(s.aclOf(n), ids) == 0
}

// may reports whether c has any of the wanted permissions. Source: ZooKeeperServer.checkACL.
func (c *Caller) may(want proto.Perms, a *acl) bool {
	if a == nil || c.SkipACL {
		return true
	}
	if c.Known != nil {
		return c.Known.granted(a, c.IDs)&want != 0
	}
	var once Decisions
	return once.evaluate(a, c.IDs)&want != 0
}

// fixACL returns the list to store for a list that a client sent for path. Source:
// PrepRequestProcessor.fixupACL.
//
// The accepted schemes identify clients here: world, auth, digest and ip, and what the flags of the
// request allow. Errors: ErrInvalidACL, and ErrMarshallingError for a list too long to be read; the
// expansion of auth can make a short list too long.
func fixACL(x *txn, path string, sent []proto.ACL) ([]proto.ACL, proto.ErrCode) {
	if isOpen(sent) {
		return sent, proto.OK
	}
	sent = uniqueACLs(sent)
	if len(sent) == 0 {
		return nil, proto.ErrInvalidACL
	}
	fixed := make([]proto.ACL, 0, len(sent))
	size := proto.ReplyHeaderBytes + 4 + proto.StatBytes
	keep := func(entry proto.ACL) proto.ErrCode {
		fixed = append(fixed, entry)
		size += 12 + len(entry.ID.Scheme) + len(entry.ID.ID)
		return x.fits("ACL", path, size)
	}
	for _, entry := range sent {
		code := proto.ErrInvalidACL
		switch {
		case entry.ID.Scheme == "auth":
			for _, id := range x.IDs {
				if expands(id) {
					if code = keep(proto.ACL{Perms: entry.Perms, ID: id}); code != proto.OK {
						break
					}
				}
			}
		case x.storable(entry.ID):
			code = keep(entry)
		}
		if code != proto.OK {
			return nil, code
		}
	}
	return fixed, proto.OK
}

// storable reports whether an entry for id can be stored unchanged.
func (x *txn) storable(id proto.ID) bool {
	switch id.Scheme {
	case "world":
		return id.ID == "anyone"
	case "digest":
		return strings.Count(strings.TrimRight(id.ID, ":"), ":") == 1 // user:hash, as Java splits it
	case "ip":
		_, ok := parseNet(id.ID)
		return ok
	case "x509":
		return x.Flags&FlagX509 != 0 && (x.Flags&FlagX509Text != 0 || validName(id.ID))
	case "sasl":
		return x.Flags&FlagSASL != 0 && validPrincipal(id.ID)
	}
	return false
}

func uniqueACLs(list []proto.ACL) []proto.ACL {
	if len(list) < 2 {
		return list
	}
	seen := make(map[proto.ACL]bool, len(list))
	return slices.DeleteFunc(slices.Clone(list), func(entry proto.ACL) bool {
		twice := seen[entry]
		seen[entry] = true
		return twice
	})
}

func parseNet(id string) (netip.Prefix, bool) {
	address, length, hasBits := strings.Cut(id, "/")
	addr, ok := parseAddr(address)
	if !ok {
		return netip.Prefix{}, false
	}
	bits := addr.BitLen()
	if hasBits {
		var err error
		if bits, err = strconv.Atoi(length); err != nil {
			return netip.Prefix{}, false
		}
	}
	p, err := addr.Prefix(bits)
	return p, err == nil
}

// parseAddr parses IPv4 as ZooKeeper does, four numbers with dots in between and possibly leading
// zeros. It refuses IPv6 addresses with an embedded IPv4 address.
func parseAddr(s string) (netip.Addr, bool) {
	if strings.Contains(s, ":") {
		addr, err := netip.ParseAddr(s)
		return addr, err == nil && addr.Zone() == "" && !addr.Is4In6()
	}
	parts := strings.FieldsFunc(s, func(r rune) bool { return r == '.' })
	if len(parts) != 4 {
		return netip.Addr{}, false
	}
	var b [4]byte
	for i, part := range parts {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 || n > 255 {
			return netip.Addr{}, false
		}
		b[i] = byte(n)
	}
	return netip.AddrFrom4(b), true
}

// maskACL hides the hashes of digest ids from callers who may read a list but not change it.
func maskACL(list []proto.ACL) []proto.ACL {
	masked := make([]proto.ACL, len(list))
	for i, entry := range list {
		if user := entry.ID.User(); user != entry.ID.ID {
			entry.ID.ID = user + ":x"
		}
		masked[i] = entry
	}
	return masked
}
