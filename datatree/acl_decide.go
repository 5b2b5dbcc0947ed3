package datatree

import (
	"net/netip"

	"github.com/gozkd/gozkd/proto"
)

// Decisions remembers which permissions lists grant to the identities of one caller, so that a
// request that meets the same list ten thousand times costs one evaluation. The identities may
// change from call to call, which empties the memory. Decisions must not be used by two goroutines
// at once. The zero value is empty.
type Decisions struct {
	ids   []proto.ID // that the decisions are for
	last  *acl       // decided last
	perms proto.Perms
	older map[*acl]proto.Perms // nil until there is a second list
	bytes int                  // of the keys of older, which keep lists that the tree has dropped
	most  int                  // of older; 0: fewDecisions
	addr  netip.Addr           // parsed from addrOf
	// addrOf is an ip identity. It is parsed when the first list with networks is met.
	addrOf string

	evaluated int // number of evaluations
}

// These bound the memory of Decisions: of a connection, and of a request, which meets many lists. A
// connection keeps lists that the tree has dropped, and there may be many connections; long lists
// are cheap to evaluate again.
const (
	fewDecisions     = 64
	manyDecisions    = 1 << 10
	maxDecisionBytes = 16 << 10 // of a connection
)

// Evaluations returns how many lists were evaluated so far. Other decisions were remembered.
func (k *Decisions) Evaluations() int { return k.evaluated }

func (k *Decisions) granted(a *acl, ids []proto.ID) proto.Perms {
	if len(ids) != len(k.ids) || len(ids) > 0 && &ids[0] != &k.ids[0] {
		k.forget()
		k.ids = ids
	}
	if a == k.last {
		return k.perms
	}
	perms, ok := k.older[a]
	if !ok {
		perms = k.evaluate(a, ids)
	}
	if _, known := k.older[k.last]; k.last != nil && !known {
		if k.older == nil || len(k.older) >= max(k.most, fewDecisions) || k.most == 0 && k.bytes >= maxDecisionBytes {
			k.older, k.bytes = make(map[*acl]proto.Perms), 0
		}
		k.older[k.last] = k.perms
		k.bytes += len(k.last.key)
	}
	k.last, k.perms = a, perms
	return perms
}

// forget empties the memory, except for the parsed address.
func (k *Decisions) forget() {
	k.ids, k.last, k.older, k.bytes = nil, nil, nil, 0
}

// evaluate returns the permissions that a grants to any of ids. Its cost does not depend on the
// product of their lengths: long lists have an index.
func (k *Decisions) evaluate(a *acl, ids []proto.ID) (perms proto.Perms) {
	k.evaluated++
	return k.named(a, ids) | a.anyone
}

// named is evaluate without the permissions that everybody has.
func (k *Decisions) named(a *acl, ids []proto.ID) (perms proto.Perms) {
	for _, id := range ids {
		switch {
		case id.Scheme == "super":
			return ^proto.Perms(0)
		case id.Scheme == "ip":
			if a.nets == nil {
				continue
			}
			addr := k.parse(id.ID)
			for i := range a.nets {
				if a.nets[i].Contains(addr) { // never, if either is invalid
					perms |= a.list[i].Perms
				}
			}
		case id.Scheme == proto.SchemeSASLAll:
			for i := range a.list {
				if a.list[i].ID.Scheme == "sasl" {
					perms |= a.list[i].Perms
				}
			}
		case id.Scheme == proto.SchemeSASLAny:
			perms |= k.named(a, []proto.ID{{Scheme: "sasl", ID: id.ID}})
		case a.byID != nil:
			perms |= a.byID[id]
		default:
			for i := range a.list {
				if a.list[i].ID == id {
					perms |= a.list[i].Perms
				}
			}
		}
	}
	return perms
}

// parse returns an address as lists contain it, or the zero Addr.
func (k *Decisions) parse(s string) netip.Addr {
	if s != k.addrOf {
		addr, err := netip.ParseAddr(s)
		if err == nil {
			addr = addr.Unmap().WithZone("")
		}
		k.addr, k.addrOf = addr, s
	}
	return k.addr
}
