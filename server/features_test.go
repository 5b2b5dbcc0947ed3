package server_test

import (
	"encoding/json"
	"testing"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
	"github.com/gozkd/gozkd/server"
)

// TestFeatures_AreToldButNotThere: getData and exists find the features, and no other request does:
// not a list, a count, a watch, a write, an ACL or a multiRead. A znode with the path hides them.
func TestFeatures_AreToldButNotThere(t *testing.T) {
	bubble(t, ticks, func(t *testing.T, dial func() *raw) {
		r := dial()
		r.connect(60_000, 0, nil)
		path := proto.FeaturesPath
		xid := int32(0)
		call := func(op proto.OpCode, body record) (proto.ErrCode, []byte) {
			t.Helper()
			xid++
			h, d := r.call(xid, op, body)
			return h.Err, d.Rest()
		}
		count := func() string {
			_, n := call(proto.OpGetAllChildrenNumber, &proto.PathRequest{Path: new("/zookeeper")})
			return string(n)
		}
		znodes := count()

		code, body := call(proto.OpGetData, &proto.PathWatchRequest{Path: path, Watch: true})
		var got proto.DataResponse
		d := jute.NewDecoder(body)
		got.Decode(&d)
		var f proto.Features
		if err := json.Unmarshal(got.Data, &f); code != proto.OK || d.Err() != nil || d.Remaining() > 0 || err != nil || f.Server != "gozkd" || f.Version != server.Version || f.Ops["listPage"] != proto.OpListPage {
			t.Fatalf("%v, %q: %v, %+v", code, got.Data, err, f)
		}
		want := proto.Stat{DataLength: int32(len(got.Data))}
		if code, body := call(proto.OpExists, &proto.PathWatchRequest{Path: path, Watch: true}); code != proto.OK || got.Stat != want || string(body) != string(want.Append(nil)) {
			t.Fatalf("exists: %v, %x; the Stat of getData is %+v", code, body, got.Stat)
		}
		multi := &proto.MultiRequest{Ops: []proto.MultiOp{{Op: proto.OpGetData, Path: path}}}
		if _, body := call(proto.OpMultiRead, multi); len(body) < 4 || body[0] != 0xff {
			t.Errorf("multiRead: %x", body)
		}
		for op, body := range map[proto.OpCode]record{
			proto.OpGetChildren:  &proto.PathWatchRequest{Path: path},
			proto.OpGetACL:       &proto.PathRequest{Path: &path},
			proto.OpSetData:      &proto.SetDataRequest{Path: path, Version: -1},
			proto.OpDelete:       &proto.PathVersionRequest{Path: path, Version: -1},
			proto.OpCheckWatches: &proto.WatchesRequest{Path: path, Type: proto.WatcherAny},
		} {
			want := proto.ErrNoNode
			if op == proto.OpCheckWatches {
				want = proto.ErrNoWatcher
			}
			if code, _ := call(op, body); code != want {
				t.Errorf("%v: %v, want %v", op, code, want)
			}
		}
		_, body = call(proto.OpGetChildren, &proto.PathWatchRequest{Path: "/zookeeper"})
		var list proto.ChildrenResponse
		d = jute.NewDecoder(body)
		if list.Decode(&d, proto.OpGetChildren); len(list.Children) != 2 || count() != znodes {
			t.Errorf("children: %q", list.Children)
		}

		if code, _ := call(proto.OpCreate, create{path: path}); code != proto.OK {
			t.Fatal(code)
		}
		_, body = call(proto.OpGetData, &proto.PathWatchRequest{Path: path})
		d = jute.NewDecoder(body)
		if got.Decode(&d); string(got.Data) != "x" || got.Stat.Czxid == 0 || d.Remaining() > 0 {
			t.Errorf("a znode with the path: %q, %+v", got.Data, got.Stat)
		}
	})
}
