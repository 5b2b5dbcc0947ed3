package datatree

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/proto"
)

// What a list grants is asked for without a request, too: to read, and to those whom it names.
func TestACL_Questions(t *testing.T) {
	alice := proto.ID{Scheme: "digest", ID: "alice:h"}
	tree := New(Options{})
	for i, list := range [][]proto.ACL{{{Perms: proto.PermRead, ID: alice}}, proto.OpenACL()} {
		body := (&proto.CreateRequest{Path: []string{"/a", "/open"}[i], ACL: list}).Append(nil, proto.OpCreate)
		if res, _ := tree.Apply(Header{Zxid: proto.Zxid(i + 1)}, &Request{Op: proto.OpCreate, Body: body}); res.Err != proto.OK {
			t.Fatal(res.Err)
		}
	}
	for _, tc := range []struct {
		path             string
		ids              []proto.ID
		readable, exists bool
		reads, both      bool // granted: to read; to read and create
	}{
		{"/a", []proto.ID{alice}, true, true, true, false},
		{"/a", nil, false, true, false, false},
		{"/open", []proto.ID{alice}, true, true, false, false},
		{"/missing", []proto.ID{alice}, false, false, false, false},
	} {
		readable, exists := tree.ReadableNow(tc.path, Caller{IDs: tc.ids})
		reads, both := tree.Granted(tc.path, proto.PermRead, tc.ids), tree.Granted(tc.path, proto.PermRead|proto.PermCreate, tc.ids)
		if readable != tc.readable || exists != tc.exists || reads != tc.reads || both != tc.both {
			t.Errorf("%+v: readable %v, exists %v, granted %v and %v", tc, readable, exists, reads, both)
		}
	}
	for _, path := range []string{"/a", "/open"} {
		ref := ACLRef{tree.aclOf(tree.get(path))}
		again := DecodeACL([]byte(ref.Encoding()))
		if (ref.Encoding() == "") != (path == "/open") || again.Encoding() != ref.Encoding() || tree.Readable(again, Caller{}) != (path == "/open") {
			t.Errorf("%s: the list becomes %q", path, again.Encoding())
		}
	}
	for id, want := range map[string]bool{
		"1.2.3.4": true, "::1": true, "1.2.a.4": false, "1.2.-3.4": false, "1.2.3.256": false, "::zz": false, "::ffff:1.2.3.4": false, "fe80::1%eth0": false,
	} {
		if _, valid := parseAddr(id); valid != want {
			t.Errorf("address %s: valid %v", id, valid)
		}
	}
}

// The forms of attributes that Java's X500Principal reads: object identifiers, DER, quotes and
// escapes.
func TestValidName_Forms(t *testing.T) {
	zeros := func(n int) string { return strings.Repeat("00", n) }
	for id, want := range map[string]bool{
		"CN": false, "CN=\n\"a\"": true, "CN= #04": false,
		"2.5=x": true, "2.40=x": true, "1.39=x": true, "1..2=x": false, "1.2.=x": false, "1.a=x": false, "1.2.a=x": false, "OID.1=x": false,
		"99999999999999999999.1=x": false, "1.99999999999999999999=x": false, "2.99999999999999999999=x": true,
		"CN=#04": false, "CN=#0400": true, "CN=#04020102": true, "CN=#0402010203": false, "CN=#0g00": false, "CN=#zz00": false,
		"CN=#0480" + zeros(128): false, "CN=#0480": false, "CN=#047f" + zeros(127): true, "CN=#0481010a": true, "CN=#048200010a": true, "CN=#0484000000010a": true,
		"CN=#048500000000010a": false, "CN=#048201": false, "CN=#04820001": false, "CN=#04820000": true,
		"CN=#04820100" + zeros(256): true, "CN=#04820100" + zeros(1): false, "CN=#04820100": false,
		`CN=\0a`: true, `CN=\4`: false, `CN=\4x`: false, `CN=\41<`: false, `CN=\,<`: false,
		`CN=""`: true, `CN="\""`: true, `CN="\x"`: false, `CN="a" `: true,
	} {
		if got := validName(id); got != want {
			t.Errorf("%q: %v, want %v", id, got, want)
		}
	}
}

// Everybody is world:anyone, and nobody else whose name is like that.
func TestACL_Anyone(t *testing.T) {
	for id, want := range map[proto.ID]proto.Perms{
		{Scheme: "world", ID: "anyone"}: proto.PermRead, {Scheme: "sasl", ID: "anyone"}: 0, {Scheme: "world", ID: "x"}: 0,
	} {
		if a := newACL(string(appendACL(nil, []proto.ACL{{Perms: proto.PermRead, ID: id}}))); a.anyone != want {
			t.Errorf("%v grants %b to everybody, want %b", id, a.anyone, want)
		}
	}
}

// Long lists have an index, short ones do not.
func TestACL_LongListsHaveAnIndex(t *testing.T) {
	for n, want := range map[int]bool{shortACL: false, shortACL + 1: true} {
		if a := newACL(string(appendACL(nil, longACL(n-1, proto.ID{Scheme: "digest", ID: "me:h"})))); len(a.list) != n || (a.byID != nil) != want {
			t.Errorf("%d entries: an index %v, want %v", len(a.list), a.byID != nil, want)
		}
	}
}

// The number of a list that no znode has any more is given to the next list, and all memory of the
// table is freed with the last list.
func TestACL_NumbersAreUsedAgain(t *testing.T) {
	a := aclTable{numbers: make(map[string]uint32)}
	key := func(i int) string {
		return string(appendACL(nil, []proto.ACL{{Perms: proto.PermRead, ID: proto.ID{Scheme: "digest", ID: fmt.Sprint(i, ":h")}}}))
	}
	for round := range 2 {
		for i := range 10 {
			if number := a.retain(key(i)); number != uint32(i+1) {
				t.Errorf("round %d: list %d has number %d", round, i, number)
			}
		}
		a.release(4)
		if a.lists[3] != nil {
			t.Error("a list stays that nobody has")
		}
		if number := a.retain(key(99)); number != 4 || len(a.lists) != 10 {
			t.Errorf("the next list has number %d of %d", number, len(a.lists))
		}
		for i := range 10 {
			a.release(uint32(i + 1))
		}
		if a.lists != nil || a.free != nil {
			t.Errorf("without lists, the table has %d of them and %d free numbers", len(a.lists), len(a.free))
		}
	}
}
