package datatree

import (
	"strings"
	"testing"

	"github.com/gozkd/gozkd/proto"
)

// The bounds on the work of a request are exact: all members and versions refuse the same lists.
func TestRefusal_Bounds(t *testing.T) {
	var none, auth aclSize
	for scheme, want := range map[string]bool{"digest": true, "x509": true, "sasl": true, "ip": false, "world": false, "auth": false, "super": false} {
		if expands(proto.ID{Scheme: scheme}) != want {
			t.Errorf("auth stands for ids of %s: want %v", scheme, want)
		}
	}
	if auth = expansion([]proto.ID{{Scheme: "digest", ID: "a:b"}, {Scheme: "ip", ID: "1.2.3.4"}, {Scheme: "sasl", ID: "a"}}); auth != (aclSize{2, 12 + 9 + 12 + 5}) {
		t.Errorf("auth becomes %+v", auth)
	}
	entry := func(scheme string, bytes int) proto.ACL {
		return proto.ACL{ID: proto.ID{Scheme: scheme, ID: strings.Repeat("x", bytes)}}
	}
	short := func(n int) []proto.ACL { return make([]proto.ACL, n) } // of 12 bytes each
	for _, tc := range []struct {
		what string
		auth aclSize
		list []proto.ACL
		want bool
	}{
		{"all entries", none, short(MaxACLEntries), true}, {"an entry too many", none, short(MaxACLEntries + 1), false},
		{"all bytes", none, []proto.ACL{entry("ip", MaxACLBytes-14)}, true}, {"a byte too many", none, []proto.ACL{entry("ip", MaxACLBytes-13)}, false},
		{"all entries with auth", auth, append(short(MaxACLEntries-2), entry("auth", 0)), true},
		{"an entry too many with auth", auth, append(short(MaxACLEntries-1), entry("auth", 0)), false},
		{"all bytes with auth", auth, []proto.ACL{entry("auth", 9), entry("ip", MaxACLBytes-14-38)}, true},
		{"a byte too many with auth", auth, []proto.ACL{entry("auth", 9), entry("ip", MaxACLBytes-13-38)}, false},
	} {
		code, why := tc.auth.bound(proto.OpCreate, "/a", tc.list)
		if (code == proto.OK) != tc.want || (why == "") != tc.want {
			t.Errorf("%s: %v %q", tc.what, code, why)
		}
		request := Request{Op: proto.OpSetACL, Body: (&proto.SetACLRequest{Path: "/a", ACL: tc.list}).Append(nil)}
		if tc.auth != none {
			request.IDs = []proto.ID{{Scheme: "digest", ID: "a:b"}, {Scheme: "sasl", ID: "a"}}
		}
		if code, _ := New(Options{}).Refusal(&request, 1<<20); (code == proto.OK) != tc.want {
			t.Errorf("%s, in a request: %v", tc.what, code)
		}
	}
	for _, tc := range []struct {
		op   proto.MultiOp
		want int
	}{
		{proto.MultiOp{Path: "/abc", Data: make([]byte, 10)}, 14}, {proto.MultiOp{Path: "/", Data: make([]byte, 2*largeBytes)}, 1 + largeBytes},
		{proto.MultiOp{Path: "/", ACL: []proto.ACL{entry("ip", 3)}}, 1 + 17}, {proto.MultiOp{Path: "/", ACL: []proto.ACL{entry("auth", 0)}}, 1 + 16 + 38},
	} {
		if got := auth.made(&tc.op); got != tc.want {
			t.Errorf("%+v makes a znode of %d bytes, want %d", tc.op, got, tc.want)
		}
	}
	tree := New(Options{})
	put(t, tree, "/a", make([]byte, 100), proto.OpenACL())
	root, a := len(tree.root.blob().text), len(tree.get("/a").blob().text)
	check, set := proto.MultiOp{Op: proto.OpCheck, Path: "/a"}, proto.MultiOp{Op: proto.OpSetData, Path: "/a"}
	create, remove := proto.MultiOp{Op: proto.OpCreate, Path: "/b", Data: make([]byte, 300)}, proto.MultiOp{Op: proto.OpDelete, Path: "/a"}
	below := proto.MultiOp{Op: proto.OpCreate, Path: "/b/c"}
	for _, tc := range []struct {
		what string
		ops  []proto.MultiOp
		work int
	}{
		{"a check", []proto.MultiOp{check, set}, 2*opWork + a},
		{"changes", []proto.MultiOp{set, set}, 2 * (opWork + a)},
		{"a create and a delete", []proto.MultiOp{create, remove}, 2 * (opWork + root)},
		{"below a znode that the multi makes", []proto.MultiOp{create, below}, 2*opWork + root + 302},
		{"twice below it", []proto.MultiOp{create, below, below}, 3*opWork + root + 2*302},
		{"below nothing", []proto.MultiOp{below}, opWork},
	} {
		for _, limit := range []int{tc.work - 1, tc.work} {
			code, why := tree.multiRefusal(&proto.MultiRequest{Ops: tc.ops}, &none, limit)
			if fits := limit == tc.work; (code == proto.OK) != fits || (why == "") != fits {
				t.Errorf("%s, of %d bytes: %v %q", tc.what, limit, code, why)
			}
		}
	}
	long := Request{
		Op: proto.OpSetACL, IDs: []proto.ID{{Scheme: "digest", ID: "a:" + strings.Repeat("b", 2*MaxACLBytes/3)}},
		Body: (&proto.SetACLRequest{Path: "/a", ACL: []proto.ACL{entry("auth", 0), entry("auth", 0)}}).Append(nil),
	}
	if code, _ := tree.Refusal(&long, 1<<20); code != proto.ErrInvalidACL {
		t.Errorf("a short list that becomes long: %v", code)
	}
	const work = 64*opWork + 63*len("/missing") // of 64 changes of a znode that an earlier one may have made
	for _, tc := range []struct {
		bytes, maxBuffer int
		want             proto.ErrCode
	}{
		{cheapMultiBytes, 1, proto.OK}, {cheapMultiBytes + 1, 1, proto.ErrMarshallingError},
		{cheapMultiBytes + 1, work/workFactor + 1, proto.OK}, {cheapMultiBytes + 1, (work - 1) / workFactor, proto.ErrMarshallingError},
	} {
		var m proto.MultiRequest
		for range 64 {
			m.Ops = append(m.Ops, proto.MultiOp{Op: proto.OpSetData, Path: "/missing"})
		}
		m.Ops[63].Data = []byte{}
		m.Ops[63].Data = make([]byte, tc.bytes-len(m.Append(nil)))
		request := Request{Op: proto.OpMulti, Body: m.Append(nil)}
		if code, _ := tree.Refusal(&request, int32(tc.maxBuffer)); code != tc.want || len(request.Body) != tc.bytes {
			t.Errorf("%+v: %v, %d bytes", tc, code, len(request.Body))
		}
	}
}
