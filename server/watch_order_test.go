package server_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// A read that waits in the queue is answered while its connection's write is applied. The event of
// that write must come before every reply that shows the change: the write's own and the read's.
func TestWatch_EventComesBeforeRepliesThatShowTheChange(t *testing.T) {
	read := func(path string, watch bool) record { return &proto.PathWatchRequest{Path: path, Watch: watch} }
	set := &proto.SetDataRequest{Path: "/a", Version: -1}
	multi := &proto.MultiRequest{Ops: []proto.MultiOp{{Op: proto.OpSetData, Path: "/a", Version: -1}}}
	del := &proto.PathVersionRequest{Path: "/a", Version: -1}
	bubble(t, server.Config{}, func(t *testing.T, dial func() *raw) {
		r := dial()
		r.connect(10_000, 0, nil)
		for i, c := range []struct {
			watch  proto.OpCode
			change proto.OpCode
			body   record
			event  proto.EventType
			path   string
		}{
			{proto.OpExists, proto.OpCreate, create{path: "/a", op: proto.OpCreate}, proto.EventCreated, "/a"},
			{proto.OpGetData, proto.OpSetData, set, proto.EventDataChanged, "/a"},
			{proto.OpExists, proto.OpMulti, multi, proto.EventDataChanged, "/a"},
			{proto.OpGetChildren2, proto.OpDelete, del, proto.EventDeleted, "/a"},
			{proto.OpGetChildren, proto.OpCreate2, create{path: "/a", op: proto.OpCreate2}, proto.EventChildrenChanged, "/"},
			{proto.OpGetData, proto.OpDelete, del, proto.EventDeleted, "/a"},
		} {
			xid := int32(10 * i)
			r.writeAll(slices.Concat( // at once, so that the second read waits behind the write
				frame(xid+1, c.watch, read(c.path, true)), frame(xid+2, c.change, c.body), frame(xid+3, c.watch, read(c.path, false))))
			if h, _ := r.reply(); h.Xid != xid+1 {
				t.Fatalf("%v: xid %d instead of the reply that sets the watch", c.change, h.Xid)
			}
			if _, e := r.event(); e.Type != c.event || e.Path != c.path {
				t.Errorf("%v: %v of %s, want %v of %s", c.change, e.Type, e.Path, c.event, c.path)
			}
			for _, want := range []int32{xid + 2, xid + 3} {
				if h, _ := r.reply(); h.Xid != want {
					t.Errorf("%v: xid %d instead of %d", c.change, h.Xid, want)
				}
			}
		}
	})
}

// setWatches reports exactly the changes after its zxid. Every watch fires once: at once if the
// change came after the zxid, otherwise with the next change.
func TestSetWatches_ReportsChangesAfterTheZxid(t *testing.T) {
	path, none := []string{"/a"}, []string{} // not null, which would fail the request
	empty := proto.SetWatchesRequest{Data: none, Exist: none, Child: none, Persistent: none, PersistentRecursive: none}
	data, child := empty, empty
	data.Data, child.Child = path, path
	bubble(t, server.Config{}, func(t *testing.T, dial func() *raw) {
		watcher, writer := dial(), dial()
		watcher.connect(10_000, 0, nil)
		writer.connect(10_000, 0, nil)
		var xid int32
		write := func(op proto.OpCode, body record) proto.Zxid {
			xid++
			h, _ := writer.call(xid, op, body)
			return h.Zxid
		}
		write(proto.OpCreate, create{path: "/a", op: proto.OpCreate})
		set := func() proto.Zxid { return write(proto.OpSetData, &proto.SetDataRequest{Path: "/a", Version: -1}) }
		children := 0
		addChild := func() proto.Zxid {
			children++
			return write(proto.OpCreate, create{path: fmt.Sprintf("/a/%d", children), op: proto.OpCreate})
		}
		for _, op := range []proto.OpCode{proto.OpSetWatches, proto.OpSetWatches2} {
			for _, c := range []struct {
				watches proto.SetWatchesRequest
				change  func() proto.Zxid
				event   proto.EventType
			}{
				{data, set, proto.EventDataChanged},
				{child, addChild, proto.EventChildrenChanged},
			} {
				for seen := range proto.Zxid(3) { // the zxid is that before the change, of the change, or after it
					c.watches.RelativeZxid = c.change() - 1 + seen
					xid++
					watcher.request(xid, op, setWatches{&c.watches, op})
					event := func() {
						t.Helper()
						if _, e := watcher.event(); e.Type != c.event || e.Path != "/a" {
							t.Errorf("%v: %v of %s, want %v of /a", op, e.Type, e.Path, c.event)
						}
					}
					if seen == 0 {
						event()
					}
					if h, _ := watcher.reply(); h.Xid != xid || h.Err != proto.OK {
						t.Fatalf("%v with the zxid of %v %+d: xid %d instead of %d, %v", op, c.event, seen-1, h.Xid, xid, h.Err)
					}
					c.change()
					if seen > 0 {
						event()
					} // otherwise nothing comes, which the next step would notice
				}
			}
		}
		if h, _ := watcher.call(xid+1, proto.OpExists, &proto.PathWatchRequest{Path: "/a"}); h.Err != proto.OK {
			t.Error(h.Err)
		}
	})
}

// setWatches is a record for request.
type setWatches struct {
	*proto.SetWatchesRequest
	op proto.OpCode
}

func (s setWatches) Append(b []byte) []byte { return s.SetWatchesRequest.Append(b, s.op) }
