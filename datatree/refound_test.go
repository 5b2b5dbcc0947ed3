package datatree

import (
	"strings"
	"testing"

	"github.com/gozkd/gozkd/proto"
	"pgregory.net/rapid"
)

// After any history a refounded tree has no sessions, ephemerals and members. Every other znode is
// unchanged, except that parents have lost children, and the tree works as any other.
func TestRefound(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		tree, twin, s := New(Options{TrackDirty: true}), New(Options{}), make(store)
		g := newGenerator()
		for range rapid.IntRange(0, 80).Draw(rt, "steps") {
			if rapid.IntRange(0, 15).Draw(rt, "step") == 0 {
				s.merge(t, tree.Capture())
				tree = s.restore(t)
			}
			h, r := g.next(rt)
			res, _ := tree.Apply(h, r)
			twin.Apply(h, r)
			g.saw(r, res)
		}
		before := make(map[string]record)
		for n := range tree.znodes.All() {
			before[n.path()] = n.record()
		}
		sessions, ephemerals, last := tree.NumSessions(), tree.NumEphemerals(), tree.LastZxid()
		members, _ := tree.Config()
		alone := tree.ensemble.empty()
		epoch := last.Epoch() + rapid.Uint32Range(1, 1<<20).Draw(rt, "leap")
		got := tree.Refound(epoch, 1<<42, false)
		if want := (Refounded{sessions, ephemerals, len(members)}); got != want {
			rt.Fatalf("%+v, want %+v", got, want)
		}
		if twin.Refound(epoch, 1<<42, false); twin.Digest() != tree.Digest() || twin.LastZxid() != tree.LastZxid() {
			rt.Fatal("two equal trees differ")
		}
		if tree.NumSessions() != 0 || tree.NumEphemerals() != 0 || tree.LastZxid().Epoch() != epoch {
			rt.Fatalf("%d sessions, %d ephemerals, zxid %v", tree.NumSessions(), tree.NumEphemerals(), tree.LastZxid())
		}
		if left, version := tree.Config(); len(left) != 0 || version != 0 {
			rt.Fatalf("members %v of %v", left, version)
		}
		for path, was := range before {
			n := tree.get(path)
			switch {
			case was.kind == ephemeral:
				if n != nil {
					rt.Fatalf("%s is still there", path)
				}
				continue
			case n == nil:
				rt.Fatalf("%s is gone", path)
			case path == configPath && !alone: // without an ensemble, data that a client wrote there stays
				if r := n.record(); r.data != "" {
					rt.Fatalf("%s: %q", path, r.data)
				}
				continue
			}
			is := n.record()
			if is.pzxid > last { // it has lost an ephemeral
				is.pzxid, is.cversion = was.pzxid, was.cversion
			}
			if strings.HasPrefix(path, quotaPath+"/") {
				is.data, is.null = was.data, was.null // stats count the deleted ephemerals
			}
			if is != was {
				rt.Fatalf("%s: %+v, was %+v", path, is, was)
			}
		}
		s.verify(t, tree)
		begun := Request{Op: proto.OpInitConfig, Body: []byte("server.9=new:1:2:participant;0.0.0.0:1")}
		if res, _ := tree.Apply(Header{Zxid: tree.LastZxid().Next(), TimeMs: 1 << 42}, &begun); res.Err != proto.OK {
			rt.Fatalf("a new ensemble can't begin: %v %s", res.Err, res.Why)
		}
	})
}

// The limit was that of other members, and goes in any case. Sessions may stay.
func TestRefound_Sessions(t *testing.T) {
	for keep, want := range map[bool]Refounded{false: {2, 1, 2}, true: {0, 0, 2}} {
		tree := checkTree(t)
		tree.replaceLimit(Limit{Weight: 1 << 20, Cause: LimitedByDisk})
		if got := tree.Refound(7, 1<<42, keep); got != want {
			t.Errorf("keep %v: %+v, want %+v", keep, got, want)
		}
		closed := want.Sessions
		if tree.NumSessions() != 2-closed || tree.Limit() != (Limit{}) || tree.LastZxid() != proto.MakeZxid(7, uint32(closed)+1) {
			t.Errorf("keep %v: %d sessions, limit %+v, zxid %v", keep, tree.NumSessions(), tree.Limit(), tree.LastZxid())
		}
		if config := tree.record(tree.get(configPath)); config.mzxid != tree.LastZxid() || config.data != "" || config.null {
			t.Errorf("keep %v: the members' znode is %+v", keep, config)
		}
		if err := tree.Check(); err != nil {
			t.Error(err)
		}
	}
}
