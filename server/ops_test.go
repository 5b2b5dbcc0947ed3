package server_test

import (
	"testing"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
	"github.com/gozkd/gozkd/server"
)

// TestOps_EveryRequestIsServed sends one good request of each operation of the table that clients
// may send, and expects a reply that is as long as the reply to that operation.
func TestOps_EveryRequestIsServed(t *testing.T) {
	path := jute.AppendString(nil, "/a")
	open, data := proto.AppendACLs(nil, proto.OpenACL()), jute.AppendBuffer(nil, []byte("x"))
	join := func(parts ...[]byte) (body rawBody) {
		for _, p := range parts {
			body = append(body, p...)
		}
		return body
	}
	n := func(v int32) []byte { return jute.AppendInt(nil, v) }
	long := func(v int64) []byte { return jute.AppendLong(nil, v) }
	create := func(name string, mode int32) rawBody { return join(jute.AppendString(nil, name), data, open, n(mode)) }
	check := proto.MultiRequest{Ops: []proto.MultiOp{{Op: proto.OpCheck, Path: "/a", Version: -1}}}
	get := proto.MultiRequest{Ops: []proto.MultiOp{{Op: proto.OpGetData, Path: "/a"}}}
	const created = 4 + len("/a/n") // a path
	const stat = proto.StatBytes
	seen := make(map[proto.OpCode]bool)
	for op, tc := range map[proto.OpCode]struct {
		body  rawBody
		reply int // bytes of the body, or an error code
	}{
		proto.OpCloseSession:         {nil, 0},
		proto.OpCreate:               {create("/a/n", 0), created},
		proto.OpCreate2:              {create("/a/n", 0), created + stat},
		proto.OpCreateContainer:      {create("/a/n", 4), created + stat},
		proto.OpCreateTTL:            {join(create("/a/n", 5), long(1000)), created + stat},
		proto.OpDelete:               {join(path, n(-1)), 0},
		proto.OpDeleteContainer:      {join(path), int(proto.ErrBadArguments)},
		proto.OpExists:               {join(path, []byte{0}), stat},
		proto.OpGetData:              {join(path, []byte{0}), 4 + 1 + stat},
		proto.OpSetData:              {join(path, data, n(-1)), stat},
		proto.OpGetACL:               {join(path), len(open) + stat},
		proto.OpSetACL:               {join(path, open, n(-1)), stat},
		proto.OpGetChildren:          {join(path, []byte{0}), 4},
		proto.OpGetChildren2:         {join(path, []byte{0}), 4 + stat},
		proto.OpSync:                 {join(path), len(path)},
		proto.OpPing:                 {nil, 0},
		proto.OpMulti:                {check.Append(nil), 9 + 9},
		proto.OpMultiRead:            {get.Append(nil), 9 + 4 + 1 + stat + 9},
		proto.OpReconfig:             {join(n(-1), n(-1), n(-1), long(-1)), int(proto.ErrReconfigDisabled)},
		proto.OpCheckWatches:         {join(path, n(3)), int(proto.ErrNoWatcher)},
		proto.OpRemoveWatches:        {join(path, n(3)), int(proto.ErrNoWatcher)},
		proto.OpAuth:                 {join(n(0), jute.AppendString(nil, "digest"), jute.AppendBuffer(nil, []byte("u:p"))), 0},
		proto.OpSASL:                 {join(data), 4},
		proto.OpSetWatches:           {join(long(0), n(0), n(0), n(0)), 0},
		proto.OpSetWatches2:          {join(long(0), n(0), n(0), n(0), n(0), n(0)), 0},
		proto.OpGetEphemerals:        {join(path), 4},
		proto.OpGetAllChildrenNumber: {join(path), 4},
		proto.OpAddWatch:             {join(path, n(0)), 4},
		proto.OpListPage:             {join(path, n(0), n(0), n(0), n(0)), 4 + 4 + stat},
		proto.OpWhoAmI:               {nil, -1 << 31}, // as long as the address of the client
	} {
		if op.Info().Class == proto.ClassNone {
			t.Errorf("%v is not a request of clients", op)
		}
		bubble(t, server.Config{}, func(t *testing.T, dial func() *raw) {
			r := dial()
			r.connect(10_000, 0, nil)
			if h, _ := r.call(1, proto.OpCreate, create("/a", 0)); h.Err != proto.OK {
				t.Fatal(h.Err)
			}
			xid := int32(2)
			if op == proto.OpPing {
				xid = proto.XidPing
			}
			h, d := r.call(xid, op, tc.body)
			if tc.reply < 0 && tc.reply > -1<<31 {
				if h.Err != proto.ErrCode(tc.reply) {
					t.Errorf("%v: %v, want %v", op, h.Err, proto.ErrCode(tc.reply))
				}
			} else if h.Err != proto.OK || tc.reply >= 0 && d.Remaining() != tc.reply {
				t.Errorf("%v: %v with a body of %d bytes, want %d", op, h.Err, d.Remaining(), tc.reply)
			}
		})
		seen[op] = true
	}
	for info := range proto.Ops() {
		if info.Class != proto.ClassNone && !seen[info.Code] {
			t.Errorf("no request of %s was sent: add one here", info.Name)
		}
	}
}
