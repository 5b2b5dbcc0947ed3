package datatree

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/proto"
)

// TestNotes_DeletedZnodesHoldPathsOnly: what was deleted since the last checkpoint takes no memory,
// although the next checkpoint must know of it.
func TestNotes_DeletedZnodesHoldPathsOnly(t *testing.T) {
	l := &limited{tree: New(Options{TrackDirty: true})}
	for _, size := range []int{0, 100, 1000, 100_000} {
		path := fmt.Sprint("/", size)
		l.createAt(path, make([]byte, size))
		l.createAt(path+"-changed", make([]byte, size))
	}
	l.tree.Capture()
	n := 0
	for _, child := range l.tree.children1("/") {
		if child == zookeeperPath {
			continue
		}
		if strings.HasSuffix(child, "-changed") {
			l.apply(proto.OpSetData, (&proto.SetDataRequest{Path: child, Data: make([]byte, 200_000), Version: -1}).Append(nil))
		}
		if res := l.apply(proto.OpDelete, (&proto.PathVersionRequest{Path: child, Version: -1}).Append(nil)); res.Err != proto.OK {
			t.Fatal(child, res)
		}
	}
	for e := range l.tree.dirty.notes.All() {
		if e.id != 0 {
			continue
		}
		n++
		if b := e.blob(); len(b.text)+len(b.tail()) > len(b.path())+100 {
			t.Errorf("the note of %s, which was deleted, holds %d bytes", b.path(), len(b.text)+len(b.tail()))
		}
	}
	if n != 8 {
		t.Errorf("%d notes of 8 deleted znodes", n)
	}
}

// TestCapture_AlwaysAddsUpToAll checks a tree after each step, so that a reused number never leads
// to another znode, and compares the sum of its captures with the whole tree. Sometimes many znodes
// are created or deleted at once, so that pages are allocated and released.
func TestCapture_AlwaysAddsUpToAll(t *testing.T) {
	exhaustive.Checks(t, 15, 100)
	rapid.Check(t, func(rt *rapid.T) {
		tree, s, g := New(Options{TrackDirty: true}), make(store), newGenerator()
		many := 0
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			switch rapid.IntRange(0, 11).Draw(rt, "step") {
			case 0, 1:
				c := tree.Capture()
				s.merge(t, c)
				all := make(store)
				all.merge(t, tree.CaptureAll())
				if !maps.EqualFunc(s, all, bytes.Equal) {
					rt.Fatalf("the captures together are %q, the capture of all is %q", s, all)
				}
			case 2:
				var m proto.MultiRequest
				from, to := many, rapid.IntRange(0, 1500).Draw(rt, "many")
				for ; many < to; many++ {
					m.Ops = append(m.Ops, proto.MultiOp{Op: proto.OpCreate, Path: fmt.Sprintf("/many%d", many), ACL: proto.OpenACL()})
				}
				for ; many > to; many-- {
					m.Ops = append(m.Ops, proto.MultiOp{Op: proto.OpDelete, Path: fmt.Sprintf("/many%d", many-1), Version: -1})
				}
				fails := rapid.Bool().Draw(rt, "fails")
				if fails {
					m.Ops, many = append(m.Ops, proto.MultiOp{Op: proto.OpCheck, Path: "/missing"}), from
				}
				g.zxid = g.zxid.Next()
				res, _ := tree.Apply(Header{g.zxid, g.timeMs}, &Request{Op: proto.OpMulti, Flags: FlagSkipACL, Body: m.Append(nil)})
				if res.Err != proto.OK || res.MultiFailed != fails {
					rt.Fatalf("from %d to %d: %v, failed %v", from, to, res.Err, res.MultiFailed)
				}
			default:
				h, r := g.next(rt)
				res, _ := tree.Apply(h, r)
				g.saw(r, res)
			}
			if err := tree.Check(); err != nil {
				rt.Fatal(err)
			}
		}
	})
}

// TestCapture_OfWhatCameAndWent checks that a znode created and deleted between two captures leaves
// a note only if an earlier znode had its path.
func TestCapture_OfWhatCameAndWent(t *testing.T) {
	tree := New(Options{TrackDirty: true})
	zxid := proto.Zxid(0)
	apply := func(op proto.OpCode, body []byte) {
		t.Helper()
		zxid++
		if res, _ := tree.Apply(Header{Zxid: zxid}, &Request{Op: op, Body: body}); res.Err != proto.OK {
			t.Fatal(res.Err)
		}
	}
	create := func() {
		apply(proto.OpCreate, (&proto.CreateRequest{Path: "/lock", ACL: proto.OpenACL()}).Append(nil, proto.OpCreate))
	}
	remove := func() {
		apply(proto.OpDelete, (&proto.PathVersionRequest{Path: "/lock", Version: -1}).Append(nil))
	}
	captured := func() string {
		var keys []string
		_ = tree.Capture().Range(func(key, value []byte) error { // never fails
			if key[0] == znodePrefix {
				keys = append(keys, fmt.Sprintf("%s:%v", key[1:], value != nil))
			}
			return nil
		})
		return strings.Join(keys, " ")
	}
	tree.Capture()
	for range 3 {
		create()
		remove()
	}
	if got := captured(); got != "/:true" {
		t.Errorf("new ones that went: %s", got)
	}
	create()
	if got := captured(); got != "/:true /lock:true" {
		t.Errorf("a new one: %s", got)
	}
	for range 3 {
		remove()
		create()
	}
	if got := captured(); got != "/:true /lock:true" {
		t.Errorf("another one for it: %s", got)
	}
	for range 3 {
		remove()
		create()
	}
	remove()
	if got := captured(); got != "/:true /lock:false" {
		t.Errorf("it is gone in the end: %s", got)
	}
}

// TestTree_Full refuses a znode above the limit.
func TestTree_Full(t *testing.T) {
	tree := fuzzTree(t)
	tree.mostZnodes = tree.index.len() + 1
	for i, want := range []proto.ErrCode{proto.OK, proto.ErrSystemError, proto.ErrSystemError} {
		body := (&proto.CreateRequest{Path: fmt.Sprintf("/%d", i), ACL: proto.OpenACL()}).Append(nil, proto.OpCreate)
		res, _ := tree.Apply(Header{Zxid: tree.LastZxid() + 1}, &Request{Op: proto.OpCreate, Body: body})
		if res.Err != want || (res.Why == "") != (want == proto.OK) {
			t.Errorf("create %d: %v %q, want %v", i, res.Err, res.Why, want)
		}
		if err := tree.Check(); err != nil {
			t.Error(err)
		}
	}
	b := builder{t: empty(Options{})}
	b.t.mostZnodes = 3 // the root and two of the three others
	s := make(store)
	s.merge(t, New(Options{}).CaptureAll())
	_, err := b.build(Decode(s.sorted))
	if err == nil || !strings.Contains(err.Error(), "one more than 3") {
		t.Errorf("restore: %v", err)
	}
}
