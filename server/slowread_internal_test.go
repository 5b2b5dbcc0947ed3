package server

import (
	"testing"

	"github.com/gozkd/gozkd/proto"
)

// Between slices of a multiRead its input may be in another buffer, and the former one another
// client's.
func TestPartialRead_OwnsItsPaths(t *testing.T) {
	m := proto.MultiRequest{Ops: []proto.MultiOp{{Op: proto.OpGetData, Path: "/a"}, {Op: proto.OpGetChildren, Path: "/b/c"}}}
	body := m.Append(nil)
	r := newPartialRead(body)
	clear(body)
	if r.code != proto.OK || len(r.ops) != 2 || r.ops[0].Path != "/a" || r.ops[1].Path != "/b/c" {
		t.Errorf("%v %+v", r.code, r.ops)
	}
}
