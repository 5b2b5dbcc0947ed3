package datatree

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/proto"
)

// TestAllocations bounds the allocations of the hot paths.
func TestAllocations(t *testing.T) {
	tree := New(Options{})
	apply := func(op proto.OpCode, body []byte) func() {
		r := Request{Op: op, Body: body}
		return func() {
			if res, _ := tree.Apply(Header{Zxid: tree.LastZxid() + 1}, &r); res.Err != proto.OK {
				t.Fatal(res.Err)
			}
		}
	}
	for _, path := range []string{"/a", "/a/b", "/a/c"} {
		body := (&proto.CreateRequest{Path: path, ACL: []proto.ACL{{Perms: 31, ID: proto.ID{Scheme: "ip", ID: "10.0.0.0/8"}}}}).Append(nil, proto.OpCreate)
		r := Request{Op: proto.OpCreate, Body: body, Flags: FlagSkipACL}
		if res, _ := tree.Apply(Header{Zxid: tree.LastZxid() + 1}, &r); res.Err != proto.OK {
			t.Fatal(res.Err)
		}
	}
	apply(proto.OpCreate, (&proto.CreateRequest{Path: "/open", ACL: proto.OpenACL()}).Append(nil, proto.OpCreate))()
	c := Caller{IDs: []proto.ID{{Scheme: "digest", ID: "u:h"}, {Scheme: "ip", ID: "10.1.2.3"}}}
	buf := make([]byte, 0, 100)
	for _, o := range []struct {
		name string
		want float64
		do   func()
	}{
		{"Exists", 0, func() { _, _ = tree.Exists("/a", c) }},
		{"GetData", 0, func() { _, _, _ = tree.GetData("/a/b", c) }},
		{"AppendChildren", 0, func() { _, _, _ = tree.AppendChildren(buf, "/a", c) }},
		{"Lookup", 0, func() { _, _, _ = tree.Lookup("/a/c") }},
		{"setData", 1, apply(proto.OpSetData, (&proto.SetDataRequest{Path: "/open", Data: make([]byte, 100), Version: -1}).Append(nil))},
		{"setData of null", 1, apply(proto.OpSetData, (&proto.SetDataRequest{Path: "/open", Version: -1}).Append(nil))},
	} {
		if got := testing.AllocsPerRun(100, o.do); got > o.want {
			t.Errorf("%s: %v allocations, want %v", o.name, got, o.want)
		}
	}
}

// Requests share the identities of earlier requests, whatever other clients there are, and of so
// many clients that not all are kept. Most lists begin in the same way and differ at their end.
func TestCommittedRequest_SharesIdentities(t *testing.T) {
	encode := func(ids ...proto.ID) []byte {
		return (&Request{Op: proto.OpSetData, IDs: ids, Body: []byte("body")}).Append(nil)
	}
	known := make(Identities)
	long := proto.ID{Scheme: "digest", ID: strings.Repeat("x", maxIdentityBytes)}
	for i := range 3 * maxIdentities {
		ids := []proto.ID{{Scheme: "ip", ID: fmt.Sprint("10.0.0.", i)}, {Scheme: "super"}, long}[: i%4 : i%4]
		for range 2 {
			if r := CommittedRequest(encode(ids...), known); !slices.Equal(r.IDs, ids) || string(r.Body) != "body" {
				t.Fatalf("%+v, want the identities %+v", r, ids)
			}
		}
	}
	if len(known) == 0 || len(known) > maxIdentities {
		t.Errorf("%d lists are kept, at most %d should be", len(known), maxIdentities)
	}
	for list := range known {
		if len(list) > maxIdentityBytes {
			t.Errorf("a list of %d bytes is kept", len(list))
		}
	}
	one := encode(proto.ID{Scheme: "ip", ID: "10.0.0.1"}, proto.ID{Scheme: "digest", ID: "u:h"})
	if n := testing.AllocsPerRun(100, func() { _ = CommittedRequest(one, known) }); n != 0 {
		t.Errorf("%v allocations for a client that is known", n)
	}
}
