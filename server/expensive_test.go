package server_test

import (
	"fmt"
	"testing"

	"github.com/gozkd/gozkd/proto"
)

// What is too expensive to apply is refused before the log, in its turn, and the connection goes
// on.
func TestExpensive_Refused(t *testing.T) {
	bubble(t, ticks, func(t *testing.T, dial func() *raw) {
		c := dial()
		c.connect(60_000, 0, nil)
		var list []proto.ACL
		for i := range 513 {
			list = append(list, proto.ACL{Perms: proto.PermAll, ID: proto.ID{Scheme: "ip", ID: fmt.Sprintf("10.0.%d.%d", i>>8, i&255)}})
		}
		long := &proto.CreateRequest{Path: "/long", ACL: list}
		multi := &proto.MultiRequest{Ops: []proto.MultiOp{
			{Op: proto.OpCreate, Path: "/a", ACL: proto.OpenACL()},
			{Op: proto.OpCreate, Path: "/long", ACL: list},
		}}
		first, _ := c.call(1, proto.OpCreate, create{path: "/first"})
		for i, r := range []struct {
			op   proto.OpCode
			body interface{ Append([]byte) []byte }
		}{
			{proto.OpCreate, bytesRecord(long.Append(nil, proto.OpCreate))},
			{proto.OpSetACL, &proto.SetACLRequest{Path: "/first", ACL: list, Version: -1}},
			{proto.OpMulti, multi},
		} {
			if h, d := c.call(2+int32(i), r.op, r.body); h.Err != proto.ErrInvalidACL || d.Remaining() > 0 || h.Zxid != first.Zxid {
				t.Errorf("%v: %+v with %d more bytes, the last zxid was %v", r.op, h, d.Remaining(), first.Zxid)
			}
		}
		long.ACL = list[1:]
		if h, _ := c.call(9, proto.OpCreate, bytesRecord(long.Append(nil, proto.OpCreate))); h.Err != proto.OK || h.Zxid != first.Zxid+1 {
			t.Errorf("as many entries as allowed: %+v", h)
		}
	})
}
