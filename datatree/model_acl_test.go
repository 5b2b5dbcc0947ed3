package datatree_test

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
)

// fixACL returns the stored form of a list in create and setACL (spec 10.2). A list whose getACL
// reply would be too long is refused at the entry that makes it so.
func fixACL(e env, list []proto.ACL) ([]proto.ACL, proto.ErrCode) {
	var fixed []proto.ACL
	for i, a := range list {
		if slices.Contains(list[:i], a) {
			continue
		}
		switch a.ID.Scheme {
		case "world":
			if a.ID.ID != "anyone" {
				return nil, proto.ErrInvalidACL
			}
			fixed = append(fixed, a)
		case "auth":
			found := false
			for _, id := range e.req.IDs {
				if id.Scheme == "digest" || id.Scheme == "x509" || id.Scheme == "sasl" {
					fixed = append(fixed, proto.ACL{Perms: a.Perms, ID: id})
					found = true
				}
			}
			if !found {
				return nil, proto.ErrInvalidACL
			}
		case "digest":
			parts := strings.Split(strings.TrimRight(a.ID.ID, ":"), ":")
			if len(parts) != 2 {
				return nil, proto.ErrInvalidACL
			}
			fixed = append(fixed, a)
		case "ip":
			if _, _, ok := ipRange(a.ID.ID); !ok {
				return nil, proto.ErrInvalidACL
			}
			fixed = append(fixed, a)
		default:
			return nil, proto.ErrInvalidACL
		}
		if tooLong(e, aclReply(fixed)) {
			return nil, proto.ErrMarshallingError
		}
	}
	if len(fixed) == 0 {
		return nil, proto.ErrInvalidACL
	}
	return fixed, proto.OK
}

// ipRange parses an address with an optional number of bits.
func ipRange(s string) (netip.Addr, int, bool) {
	text, bits, hasBits := strings.Cut(s, "/")
	addr, err := netip.ParseAddr(text)
	if err != nil || addr.Zone() != "" {
		return netip.Addr{}, 0, false
	}
	n := addr.BitLen()
	if hasBits {
		if n, err = strconv.Atoi(bits); err != nil || n < 0 || n > addr.BitLen() {
			return netip.Addr{}, 0, false
		}
	}
	return addr, n, true
}

// permitted is the check of spec 10.3: any of the wanted bits suffices.
func permitted(acl []proto.ACL, want proto.Perms, c datatree.Caller) bool {
	if c.SkipACL || len(acl) == 0 || slices.ContainsFunc(c.IDs, func(id proto.ID) bool { return id.Scheme == "super" }) {
		return true
	}
	for _, a := range acl {
		if a.Perms&want == 0 {
			continue
		}
		if a.ID == (proto.ID{Scheme: "world", ID: "anyone"}) {
			return true
		}
		for _, id := range c.IDs {
			if id == a.ID {
				return true
			}
			if id.Scheme != "ip" || a.ID.Scheme != "ip" {
				continue
			}
			addr, err := netip.ParseAddr(id.ID)
			network, bits, _ := ipRange(a.ID.ID)
			if err == nil && addr.BitLen() == network.BitLen() && netip.PrefixFrom(network, bits).Masked().Contains(addr) {
				return true
			}
		}
	}
	return false
}

// shownACL is the reply of getACL to a caller who may read the list (spec 10.5).
func shownACL(acl []proto.ACL, c datatree.Caller) []proto.ACL {
	if permitted(acl, proto.PermAdmin, c) {
		return acl
	}
	masked := slices.Clone(acl)
	for i, a := range masked {
		if name, _, found := strings.Cut(a.ID.ID, ":"); found && a.ID.Scheme == "digest" {
			masked[i].ID.ID = name + ":x"
		}
	}
	return masked
}
