package server_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// happened is an event with its zxid.
type happened struct {
	zxid proto.Zxid
	typ  proto.EventType
	path string
}

// again sets persistent watches as of a zxid, and returns the events before the reply.
func again(t *testing.T, r *raw, since proto.Zxid, persistent, recursive []string) (events []happened) {
	t.Helper()
	none := []string{}
	r.request(1000, proto.OpSetWatches2, setWatches{&proto.SetWatchesRequest{
		RelativeZxid: since, Data: none, Exist: none, Child: none, Persistent: persistent, PersistentRecursive: recursive,
	}, proto.OpSetWatches2})
	for {
		h, d := r.reply()
		if h.Xid == 1000 {
			if h.Err != proto.OK || d.Remaining() != 0 {
				t.Fatalf("setWatches2: %v, %d bytes", h.Err, d.Remaining())
			}
			return events
		}
		var e proto.WatcherEvent
		if e.Decode(d); h.Xid != proto.XidEvent || d.Err() != nil || e.State != proto.StateConnected {
			t.Fatalf("xid %d instead of an event (%v, %v)", h.Xid, d.Err(), e.State)
		}
		events = append(events, happened{h.Zxid, e.Type, e.Path})
	}
}

func dialed(dial func() *raw) *raw {
	r := dial()
	r.connect(10_000, 0, nil)
	return r
}

// writes makes some changes at random, failed ones and transactions among them.
func writes(r *raw, rnd *rand.Rand, n int) {
	paths := []string{"/a", "/a/b", "/a/b/c", "/a/d", "/ab", "/e"}
	op := func() proto.MultiOp {
		path := paths[rnd.IntN(len(paths))]
		switch rnd.IntN(3) {
		case 0:
			return proto.MultiOp{Op: proto.OpCreate, Path: path, ACL: proto.OpenACL()}
		case 1:
			return proto.MultiOp{Op: proto.OpDelete, Path: path, Version: -1}
		}
		return proto.MultiOp{Op: proto.OpSetData, Path: path, Version: -1}
	}
	for i := range n {
		ops := []proto.MultiOp{op()}
		if rnd.IntN(4) == 0 {
			ops = append(ops, op())
		}
		r.call(int32(i+1), proto.OpMulti, &proto.MultiRequest{Ops: ops})
	}
}

// A client that comes back gets exactly the events that it would have got: those of a client that
// stayed, from any zxid on, and after a restart as well. Then its watches are set.
func TestReplay_IsWhatWasMissed(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		var persistent, recursive []string
		for _, path := range []string{"/", "/a", "/a/b", "/ab", "/none"} {
			switch rnd.IntN(4) {
			case 0:
				persistent = append(persistent, path)
			case 1:
				recursive = append(recursive, path)
			}
		}
		persistent, recursive = append(persistent, "/a/b"), append(recursive, "/e")
		dir := t.TempDir()
		var all []happened
		var begin, last proto.Zxid
		replayed := func(t *testing.T, dial func() *raw) {
			for since := begin; since <= last; since++ {
				want := slices.DeleteFunc(slices.Clone(all), func(e happened) bool { return e.zxid <= since })
				r := dialed(dial)
				if got := again(t, r, since, persistent, recursive); !slices.Equal(got, want) {
					t.Fatalf("seed %d: after %d: %v\nwant %v", seed, since, got, want)
				}
				_ = r.nc.Close()
			}
		}
		bubble(t, server.Config{Dir: dir}, func(t *testing.T, dial func() *raw) {
			stays, writer := dialed(dial), dialed(dial)
			again(t, stays, 0, persistent, recursive)
			stays.request(proto.XidPing, proto.OpPing, nil)
			h, _ := stays.reply()
			begin = h.Zxid
			writes(writer, rnd, 60)
			stays.request(proto.XidPing, proto.OpPing, nil) // answered after all events
			h, d := stays.reply()
			for ; h.Xid == proto.XidEvent; h, d = stays.reply() {
				var e proto.WatcherEvent
				e.Decode(d)
				all = append(all, happened{h.Zxid, e.Type, e.Path})
			}
			last = h.Zxid
			if len(all) < 5 {
				t.Fatalf("%d events", len(all))
			}
			replayed(t, dial)
			back := dialed(dial)
			again(t, back, last, persistent, recursive)
			writer.call(1, proto.OpMulti, &proto.MultiRequest{Ops: []proto.MultiOp{{Op: proto.OpSetData, Path: "/", Version: -1}}})
			if slices.Contains(append(persistent, recursive...), "/") {
				h, e := back.event()
				all = append(all, happened{h.Zxid, e.Type, e.Path})
			}
		})
		bubble(t, server.Config{Dir: dir}, func(t *testing.T, dial func() *raw) { replayed(t, dial) })
	}
}

// The mark says whether nothing was missed. Without it a client gets what ZooKeeper sends.
func TestReplay_SaysWhetherItIsComplete(t *testing.T) {
	mark := func(typ proto.EventType) []proto.EventType { return []proto.EventType{typ} }
	complete, unknown := mark(proto.EventDataChanged), mark(proto.EventDeleted)
	const mb = 1 << 20
	for _, c := range []struct {
		what   string
		bytes  int64
		since  func(last proto.Zxid) proto.Zxid
		writes int
		want   []proto.EventType
	}{
		{"nothing was missed", mb, func(last proto.Zxid) proto.Zxid { return last }, 0, complete},
		{"all is known", mb, func(proto.Zxid) proto.Zxid { return 0 }, 0, complete},
		{"there is no history", -1, func(last proto.Zxid) proto.Zxid { return last }, 0, unknown},
		{"the history is too short", 200, func(proto.Zxid) proto.Zxid { return 0 }, 100, unknown},
		{"a short history reaches back", 200, func(last proto.Zxid) proto.Zxid { return last }, 100, complete},
		{"the client comes from another ensemble", mb, func(last proto.Zxid) proto.Zxid { return last + 1 }, 0, unknown},
	} {
		bubble(t, server.Config{WatchReplay: c.bytes}, func(t *testing.T, dial func() *raw) {
			writer := dialed(dial)
			for i := range c.writes {
				writer.call(int32(i+1), proto.OpSetData, &proto.SetDataRequest{Path: "/", Version: -1})
			}
			h, _ := writer.call(200, proto.OpSetData, &proto.SetDataRequest{Path: "/zookeeper/quota", Version: -1})
			r := dialed(dial)
			last := h.Zxid + 1 // the session
			got := again(t, r, c.since(last), []string{proto.ReplayMark, "/none"}, []string{})
			if len(got) != 1 || got[0].typ != c.want[0] || got[0].path != proto.ReplayMark || got[0].zxid != last {
				t.Errorf("%s: %v", c.what, got)
			}
			if got := again(t, dialed(dial), c.since(last), []string{"/none"}, []string{}); len(got) != 0 {
				t.Errorf("%s: who does not ask gets %v", c.what, got)
			}
			_, d := writer.call(201, proto.OpGetData, &proto.PathWatchRequest{Path: proto.FeaturesPath})
			if told := strings.Contains(string(d.Rest()), `"watchReplay":"/zookeeper/replay"`); told != (c.bytes > 0) {
				t.Errorf("%s: the features tell of replays: %t", c.what, told)
			}
		})
	}
}

// Too many events for one request are none, and the mark says so. With several requests the answer
// covers all of them: a part that failed before makes it NodeDeleted, one that fails later brings
// another.
func TestReplay_OfSeveralRequests(t *testing.T) {
	t.Parallel()
	serverBubble(t, server.Config{}, func(t *testing.T, s *server.Server, dial func() *raw) {
		writer := dialed(dial)
		h, _ := writer.call(1, proto.OpCreate, create{path: "/few", op: proto.OpCreate})
		before := h.Zxid
		writer.call(2, proto.OpSetData, &proto.SetDataRequest{Path: "/few", Version: -1})
		ops := slices.Repeat([]proto.MultiOp{{Op: proto.OpSetData, Path: "/", Version: -1}}, 5_001)
		for i := range int32(2) {
			writer.call(3+i, proto.OpMulti, &proto.MultiRequest{Ops: ops})
		}
		none, root, few, marked := []string{}, []string{"/"}, []string{"/few"}, []string{proto.ReplayMark}
		types := func(events []happened) (words string) {
			for _, e := range events {
				words += fmt.Sprintf("%v %s ", e.typ, e.path)
			}
			return strings.TrimSpace(words)
		}
		change, yes, no := "NodeDataChanged /few", "NodeDataChanged "+proto.ReplayMark, "NodeDeleted "+proto.ReplayMark
		for _, c := range []struct {
			what  string
			parts [][2][]string // persistent, recursive
			want  []string
		}{
			{"all is there", [][2][]string{{marked, few}, {none, {"/other"}}}, []string{change + " " + yes, ""}},
			{"first too many", [][2][]string{{root, none}, {marked, few}}, []string{"", change + " " + no}},
			{"then too many", [][2][]string{{marked, few}, {root, none}}, []string{change + " " + yes, no}},
			{"not asked", [][2][]string{{none, few}, {root, none}}, []string{change, ""}},
			{"a watch that is set already", [][2][]string{{none, few}, {few, none}, {none, few}}, []string{change, "", ""}},
		} {
			r := dialed(dial)
			for i, p := range c.parts {
				if got := types(again(t, r, before, p[0], p[1])); got != c.want[i] {
					t.Errorf("%s, request %d: %q, want %q", c.what, i+1, got, c.want[i])
				}
			}
		}
		counts := counted(s)
		if counts["gozkd_watch_replays_missed_total"] != 3 || counts["gozkd_watch_events_replayed_total"] != 5 {
			t.Errorf("counted: %d missed, %d events", counts["gozkd_watch_replays_missed_total"], counts["gozkd_watch_events_replayed_total"])
		}
	})
}

// A client that watches the mark has this watch after it came back, too.
func TestReplay_MarkIsWatched(t *testing.T) {
	bubble(t, server.Config{}, func(t *testing.T, dial func() *raw) {
		r := dialed(dial)
		again(t, r, 0, []string{proto.ReplayMark}, []string{})
		watched := &proto.WatchesRequest{Path: proto.ReplayMark, Type: proto.WatcherPersistent}
		for xid, op := range []proto.OpCode{proto.OpCheckWatches, proto.OpRemoveWatches} {
			if h, _ := r.call(int32(xid+1), op, watched); h.Err != proto.OK {
				t.Errorf("%v: %v", op, h.Err)
			}
		}
	})
}

// No event shows a znode to a client that may not read it now or, if it is gone, might not when it
// was deleted.
func TestReplay_ChecksACLs(t *testing.T) {
	bubble(t, server.Config{}, func(t *testing.T, dial func() *raw) {
		owner := dialed(dial)
		auth := &proto.AuthRequest{Scheme: "digest", Auth: []byte("user:password")}
		owner.call(proto.XidAuth, proto.OpAuth, auth)
		own := []proto.ACL{{Perms: proto.PermAll, ID: proto.ID{Scheme: "auth"}}}
		var xid int32
		do := func(ops ...proto.MultiOp) {
			t.Helper()
			xid++
			if h, _ := owner.call(xid, proto.OpMulti, &proto.MultiRequest{Ops: ops}); h.Err != proto.OK {
				t.Fatal(h.Err)
			}
		}
		made := func(path string, acl []proto.ACL) proto.MultiOp {
			return proto.MultiOp{Op: proto.OpCreate, Path: path, ACL: acl}
		}
		del := func(path string) proto.MultiOp { return proto.MultiOp{Op: proto.OpDelete, Path: path, Version: -1} }
		setACL := func(path string, acl []proto.ACL) {
			xid++
			owner.call(xid, proto.OpSetACL, &proto.SetACLRequest{Path: path, ACL: acl, Version: -1})
		}
		do(made("/a", proto.OpenACL()))
		h, _ := owner.call(900, proto.OpExists, &proto.PathWatchRequest{Path: "/a"})
		do(made("/a/open", proto.OpenACL()))
		do(made("/a/secret", own))
		do(made("/a/secret/below", proto.OpenACL()))
		do(made("/a/goes", own), del("/a/goes"))
		do(made("/a/went", proto.OpenACL()), del("/a/went"))
		do(made("/a/opened", own))
		setACL("/a/opened", proto.OpenACL())
		do(made("/a/hidden", proto.OpenACL()))
		setACL("/a/hidden", own)
		do(made("/a/reused", own), del("/a/reused"), made("/a/reused", proto.OpenACL()), del("/a/reused"))
		seen := func(r *raw) (paths []string) {
			for _, e := range again(t, r, h.Zxid, []string{"/a/secret"}, []string{"/a"}) {
				if !slices.Contains(paths, e.path) {
					paths = append(paths, e.path)
				}
			}
			return paths
		}
		want := []string{"/a/open", "/a/secret/below", "/a/went", "/a/opened", "/a/reused"}
		if got := seen(dialed(dial)); !slices.Equal(got, want) {
			t.Errorf("a stranger sees %v, want %v", got, want)
		}
		r := dialed(dial)
		r.call(proto.XidAuth, proto.OpAuth, auth)
		if got := seen(r); len(got) != 8 {
			t.Errorf("the owner sees %v", got)
		}
	})
}

// A deletion that a client could see is told, or the client is told that it missed something, also
// if a later znode at the path may not be read.
func TestReplay_DeletionBeforeAnUnreadableZnode(t *testing.T) {
	bubble(t, server.Config{}, func(t *testing.T, dial func() *raw) {
		owner := dialed(dial)
		owner.call(proto.XidAuth, proto.OpAuth, &proto.AuthRequest{Scheme: "digest", Auth: []byte("user:password")})
		own := []proto.ACL{{Perms: proto.PermAll, ID: proto.ID{Scheme: "auth"}}}
		made := func(path string, acl []proto.ACL) proto.MultiOp {
			return proto.MultiOp{Op: proto.OpCreate, Path: path, ACL: acl}
		}
		del := func(path string) proto.MultiOp { return proto.MultiOp{Op: proto.OpDelete, Path: path, Version: -1} }
		open := proto.OpenACL()
		for i, c := range []struct {
			ops  func(path string) []proto.MultiOp
			mark proto.EventType
		}{
			{func(p string) []proto.MultiOp { return []proto.MultiOp{del(p), made(p, own)} }, proto.EventDeleted},
			{func(p string) []proto.MultiOp { return []proto.MultiOp{del(p), made(p, own), del(p)} }, proto.EventDeleted},
			{func(p string) []proto.MultiOp { return []proto.MultiOp{del(p), made(p, own), del(p), made(p, open)} }, proto.EventDataChanged},
		} {
			path := fmt.Sprint("/z", i)
			h, _ := owner.call(1, proto.OpCreate, create{path: path, op: proto.OpCreate})
			if h, _ := owner.call(2, proto.OpMulti, &proto.MultiRequest{Ops: c.ops(path)}); h.Err != proto.OK {
				t.Fatal(h.Err)
			}
			got := again(t, dialed(dial), h.Zxid, []string{proto.ReplayMark}, []string{path})
			if mark := got[len(got)-1]; mark.path != proto.ReplayMark || mark.typ != c.mark {
				t.Errorf("case %d: %v", i, got)
			}
			if c.mark == proto.EventDeleted && len(got) != 1 {
				t.Errorf("case %d: a znode that may not be read is shown: %v", i, got)
			}
		}
	})
}
