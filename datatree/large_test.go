package datatree

import (
	"bytes"
	"testing"

	"github.com/gozkd/gozkd/proto"
)

// TestLargeData_StayWhereTheyAre checks that large data is not copied when anything else of the
// znode changes, and does not depend on the memory of its request.
func TestLargeData_StayWhereTheyAre(t *testing.T) {
	tree, s := New(Options{TrackDirty: true}), make(store)
	apply := func(op proto.OpCode, body []byte) {
		t.Helper()
		res, _ := tree.Apply(Header{tree.LastZxid() + 1, 1}, &Request{Op: op, Body: body})
		if res.Err != proto.OK {
			t.Fatal(res.Err)
		}
		clear(body)
		s.verify(t, tree)
	}
	large := func(b byte) []byte { return bytes.Repeat([]byte{b}, 100<<10) }
	create := func(path string, data []byte) []byte {
		return (&proto.CreateRequest{Path: path, Data: data, ACL: proto.OpenACL()}).Append(nil, proto.OpCreate)
	}
	set := func(data []byte) []byte {
		return (&proto.SetDataRequest{Path: "/large", Data: data, Version: -1}).Append(nil)
	}
	get := func(want []byte) []byte {
		t.Helper()
		data, stat, code := tree.GetData("/large", Caller{})
		if code != proto.OK || !bytes.Equal(data, want) || int(stat.DataLength) != len(want) {
			t.Fatalf("%v, %d bytes of data, or others, want %d", code, len(data), len(want))
		}
		return data
	}
	apply(proto.OpCreate, create("/large", large('a')))
	first := get(large('a'))
	apply(proto.OpCreate, create("/large/x", nil))
	apply(proto.OpSetACL, (&proto.SetACLRequest{Path: "/large", ACL: []proto.ACL{{Perms: 31, ID: proto.ID{Scheme: "ip", ID: "0.0.0.0/0"}}, proto.OpenACL()[0]}, Version: -1}).Append(nil))
	apply(proto.OpDelete, (&proto.PathVersionRequest{Path: "/large/x", Version: -1}).Append(nil))
	failing := proto.MultiRequest{Ops: []proto.MultiOp{
		{Op: proto.OpSetData, Path: "/large", Data: large('b'), Version: -1},
		{Op: proto.OpCreate, Path: "/large/y", ACL: proto.OpenACL()},
		{Op: proto.OpCheck, Path: "/missing"},
	}}
	apply(proto.OpMulti, failing.Append(nil))
	if again := get(large('a')); &again[0] != &first[0] {
		t.Error("the data were copied")
	}
	for _, data := range [][]byte{large('c'), []byte("small"), large('d')} {
		apply(proto.OpSetData, set(bytes.Clone(data)))
		get(data)
	}
	if !bytes.Equal(first, large('a')) {
		t.Error("what was read has changed")
	}
}
