package datatree

import (
	"bytes"
	"maps"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// TestRestore_InTheMiddleChangesNothing applies the same requests to two trees, one of which is
// captured at times and sometimes replaced by a tree restored from its captures. The two never
// differ.
func TestRestore_InTheMiddleChangesNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		plain, captured, s := New(Options{}), New(Options{TrackDirty: true}), make(store)
		g := newGenerator()
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			switch rapid.IntRange(0, 9).Draw(rt, "step") {
			case 0:
				s.merge(t, captured.Capture())
				captured = s.restore(t)
			case 1:
				s.merge(t, captured.Capture())
			default:
				h, r := g.next(rt)
				want, wantEvents := plain.Apply(h, r)
				got, gotEvents := captured.Apply(h, r)
				if !reflect.DeepEqual(normal(got), normal(want)) {
					rt.Fatalf("%v: result %+v, want %+v", r.Op, got, want)
				}
				if !slices.EqualFunc(gotEvents, wantEvents, sameEvent) {
					rt.Fatalf("%v: events %v, want %v", r.Op, gotEvents, wantEvents)
				}
				g.saw(r, want)
			}
			if captured.Digest() != plain.Digest() || captured.LastZxid() != plain.LastZxid() {
				rt.Fatalf("digest %#x at %v, want %#x at %v", captured.Digest(), captured.LastZxid(), plain.Digest(), plain.LastZxid())
			}
		}
		s.verify(t, captured)
		all := make(store) // of a tree without TrackDirty
		all.merge(t, plain.CaptureAll())
		if !maps.EqualFunc(s, all, bytes.Equal) {
			rt.Fatalf("the captures together are %q, the capture of all is %q", s, all)
		}
		if err := plain.Check(); err != nil {
			rt.Fatal(err)
		}
	})
}

// TestApply_ChildCounterNeverFalls checks D5.
func TestApply_ChildCounterNeverFalls(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		tree := New(Options{})
		g := newGenerator()
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			before := make(map[string]record)
			for n := range tree.znodes.All() {
				before[n.path()] = n.record()
			}
			h, r := g.next(rt)
			res, _ := tree.Apply(h, r)
			g.saw(r, res)
			for path, old := range before {
				n := tree.get(path)
				if n == nil {
					continue
				}
				if is := n.record(); is.czxid == old.czxid && is.cversion < old.cversion {
					rt.Fatalf("%v: the counter of %s fell from %d to %d", r.Op, path, old.cversion, is.cversion)
				}
			}
			if err := tree.Check(); err != nil {
				rt.Fatal(err)
			}
		}
	})
}

// TestApply_FailureChangesNothing: a failed request leaves the digest unchanged and fires no event.
func TestApply_FailureChangesNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		tree := New(Options{})
		g := newGenerator()
		for range rapid.IntRange(1, 80).Draw(rt, "steps") {
			h, r := g.next(rt)
			before := tree.meta()
			res, events := tree.Apply(h, r)
			g.saw(r, res)
			if res.Err == proto.OK && !res.MultiFailed {
				continue
			}
			if r.Op == proto.OpConfigDone && res.Serial != 0 { // a failed configDone that ended the pending change
				continue
			}
			after := tree.meta()
			after.lastZxid = before.lastZxid
			if after != before || len(events) > 0 {
				rt.Fatalf("%v failed with %v and left %+v of %+v, events %v", r.Op, res.Err, after, before, events)
			}
		}
		if err := tree.Check(); err != nil {
			rt.Fatal(err)
		}
	})
}

func sameEvent(a, b Event) bool {
	return a.Type == b.Type && a.Path == b.Path && a.Zxid == b.Zxid && reflect.DeepEqual(a.ACL.acl.acls(), b.ACL.acl.acls())
}

// normal makes empty and nil results equal.
func normal(r Result) Result {
	if len(r.Multi) == 0 {
		r.Multi = nil
	}
	return r
}

// generator draws requests that often refer to something existing: it uses few names and few
// sessions.
type generator struct {
	zxid     proto.Zxid
	timeMs   int64
	sessions []SessionInfo // as their clients know them, including closed ones
	pending  proto.Zxid    // serial of the last requested change of the ensemble
	first    []string      // created first, so that more requests refer to something existing
}

func newGenerator() *generator {
	return &generator{timeMs: 1000, sessions: make([]SessionInfo, 1), first: []string{
		"/a", "/a/b", "/zookeeper/quota/a", "/zookeeper/quota/a/zookeeper_stats", "/zookeeper/quota/a/b"}}
}

// saw tells the generator the result of a request.
func (g *generator) saw(r *Request, res Result) {
	if res.Pending {
		g.pending = res.Serial
	}
	if res.SessionID == 0 {
		return
	}
	info := SessionInfo{ID: res.SessionID, ConnEpoch: res.Zxid}
	d := jute.NewDecoder(r.Body)
	var body CreateSessionBody
	body.decode(&d)
	info.Passwd = body.Passwd
	g.sessions = append(g.sessions, info)
}

var (
	someNames = []string{"/a", "/a", "/a", "/a/b", "/a/b", "/a/b/c", "/d", "/d/", "/a/b/", "/", "", "a", "/a//b", "/a/.",
		"/zookeeper", "/zookeeper/config", "/a/b0000000000", "/a/b0000000001",
		"/zookeeper/quota/a", "/zookeeper/quota/a/zookeeper_limits", "/zookeeper/quota/a/zookeeper_stats",
		"/zookeeper/quota/a/b", "/zookeeper/quota/a/b/zookeeper_limits", "/zookeeper/quota/a/b/zookeeper_stats"}
	someData = [][]byte{nil, {}, []byte("x"), []byte("some data"), []byte("countHardLimit=3"), []byte("byteHardLimit=9,count=1"),
		bytes.Repeat([]byte("large"), largeBytes/4)}
	someACLs = [][]proto.ACL{
		proto.OpenACL(), proto.OpenACL(), proto.OpenACL(), proto.ReadACL(), {},
		{{Perms: proto.PermAll, ID: proto.ID{Scheme: "digest", ID: "u:h"}}},
		{{Perms: proto.PermAll, ID: proto.ID{Scheme: "auth"}}, {Perms: proto.PermRead, ID: proto.ID{Scheme: "ip", ID: "10.0.0.0/8"}}},
	}
	someIDs = [][]proto.ID{nil, {{Scheme: "ip", ID: "10.1.2.3"}}, {{Scheme: "digest", ID: "u:h"}}, {{Scheme: "super"}}}
	someOps = []proto.OpCode{proto.OpCreate, proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL,
		proto.OpDelete, proto.OpDelete, proto.OpSetData, proto.OpSetData, proto.OpCheck}
)

func (g *generator) next(rt *rapid.T) (Header, *Request) {
	g.zxid = g.zxid.Next()
	if len(g.first) > 0 {
		body := (&proto.CreateRequest{Path: g.first[0], ACL: proto.OpenACL()}).Append(nil, proto.OpCreate)
		g.first = g.first[1:]
		return Header{g.zxid, g.timeMs}, &Request{Op: proto.OpCreate, Body: body}
	}
	g.timeMs += rapid.SampledFrom([]int64{0, 1, 50, 100000}).Draw(rt, "ms")
	s := rapid.SampledFrom(g.sessions).Draw(rt, "session")
	r := &Request{
		Session: s.ID, ConnEpoch: s.ConnEpoch, Server: 3,
		Flags:     RequestFlags(rapid.IntRange(0, 3).Draw(rt, "flags")),
		MaxBuffer: rapid.SampledFrom([]int32{0, 0, 150}).Draw(rt, "maxbuffer"),
		IDs:       rapid.SampledFrom(someIDs).Draw(rt, "ids"),
	}
	switch rapid.IntRange(0, 14).Draw(rt, "kind") {
	case 0:
		r.Op, r.Body = proto.OpCreateSession, (&CreateSessionBody{TimeoutMs: 4000, Passwd: [16]byte{byte(g.zxid)}}).Append(nil)
	case 1:
		r.Op, r.Body = proto.OpReattachSession, (&CreateSessionBody{TimeoutMs: 5000, Passwd: s.Passwd}).Append(nil)
	case 2:
		r.Op = proto.OpCloseSession
	case 3:
		r.Op = proto.OpSetACL
		r.Body = (&proto.SetACLRequest{Path: g.path(rt), ACL: g.acl(rt), Version: g.version(rt)}).Append(nil)
	case 4:
		path := g.path(rt)
		r.Op, r.Session, r.Body = proto.OpDeleteContainer, 0, (&proto.PathRequest{Path: &path}).Append(nil)
	case 5:
		r.Op, r.Body = proto.OpExpireSession, ExpireSessionBody{uint32(rapid.IntRange(0, 1).Draw(rt, "epoch"))}.Append(nil)
	case 6, 7:
		g.ensemble(rt, r)
	case 8, 9, 10:
		var m proto.MultiRequest
		for range rapid.IntRange(0, 5).Draw(rt, "ops") {
			m.Ops = append(m.Ops, g.op(rt))
		}
		r.Op, r.Body = proto.OpMulti, m.Append(nil)
	default:
		op := g.op(rt)
		all := (&proto.MultiRequest{Ops: []proto.MultiOp{op}}).Append(nil)
		r.Op, r.Body = op.Op, all[9:len(all)-9]
	}
	return Header{g.zxid, g.timeMs}, r
}

// ensemble makes r a step of a reconfig.
func (g *generator) ensemble(rt *rapid.T, r *Request) {
	switch rapid.IntRange(0, 4).Draw(rt, "step") {
	case 0:
		r.Op, r.Session, r.Body = proto.OpInitConfig, 0, []byte("server.1=h1:1:2\nserver.2=h2:1:2\nserver.3=h3:1:2:observer")
	case 1, 2:
		c := ConfigDoneBody{Serial: g.pending, Code: rapid.SampledFrom([]proto.ErrCode{0, 0, -13}).Draw(rt, "code")}
		r.Op, r.Session, r.Body = proto.OpConfigDone, 0, c.Append(nil)
	default:
		line := rapid.SampledFrom([]string{"server.3=h3:1:2;3", "server.4=h4:1:2:observer;3", "x"}).Draw(rt, "line")
		r.Op, r.Body = proto.OpReconfig, (&proto.ReconfigRequest{Joining: &line, ConfigID: -1}).Append(nil)
	}
}

func (g *generator) op(rt *rapid.T) proto.MultiOp {
	return proto.MultiOp{
		Op:      rapid.SampledFrom(someOps).Draw(rt, "op"),
		Path:    g.path(rt),
		Data:    rapid.SampledFrom(someData).Draw(rt, "data"),
		ACL:     g.acl(rt),
		Mode:    proto.CreateMode(rapid.SampledFrom([]int{0, 0, 1, 2, 3, 4, 5, 6}).Draw(rt, "mode")),
		TTL:     rapid.SampledFrom([]int64{-1, 0, 60}).Draw(rt, "ttl"),
		Version: g.version(rt),
	}
}

func (g *generator) path(rt *rapid.T) string { return rapid.SampledFrom(someNames).Draw(rt, "path") }

func (g *generator) acl(rt *rapid.T) []proto.ACL { return rapid.SampledFrom(someACLs).Draw(rt, "acl") }

func (g *generator) version(rt *rapid.T) int32 {
	return rapid.SampledFrom([]int32{-1, -1, 0, 1, 2}).Draw(rt, "version")
}
