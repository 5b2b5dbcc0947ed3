package datatree

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/proto"
)

// TestRewind_ReplicasAndClientsFollow applies the same requests to two trees, of which one goes on from what was restored of
// its captures now and then. Both make the same snapshots, and rewind alike. Before each rewind clients read everything;
// after it they read again what the events tell them to, and what they have then is what the tree has.
func TestRewind_ReplicasAndClientsFollow(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		plain, captured, s := New(Options{}), New(Options{TrackDirty: true}), make(store)
		g := newGenerator()
		var snapshots [][]byte
		for range rapid.IntRange(1, 80).Draw(rt, "steps") {
			step := rapid.IntRange(0, 15).Draw(rt, "step")
			switch {
			case step == 0:
				s.merge(t, captured.Capture())
				captured = s.restore(t)
				continue
			case step == 1:
				snapshots = append(snapshots, plain.Snapshot())
				if !bytes.Equal(snapshots[len(snapshots)-1], captured.Snapshot()) {
					rt.Fatal("two snapshots of equal trees differ")
				}
				continue
			}
			h, r := g.next(rt)
			rewind := step == 2 && len(snapshots) > 0
			if rewind {
				r = &Request{Op: proto.OpRewind, Body: rapid.SampledFrom(snapshots).Draw(rt, "to")}
			}
			before, last := viewAll(plain), plain.LastZxid()
			want, wantEvents := plain.Apply(h, r)
			got, gotEvents := captured.Apply(h, r)
			if !reflect.DeepEqual(normal(got), normal(want)) || !slices.EqualFunc(gotEvents, wantEvents, sameEvent) {
				rt.Fatalf("%v: got %+v %v, want %+v %v", r.Op, got, gotEvents, want, wantEvents)
			}
			g.saw(r, want)
			if captured.Digest() != plain.Digest() {
				rt.Fatalf("%v: digest %#x, want %#x", r.Op, captured.Digest(), plain.Digest())
			}
			if !rewind {
				continue
			}
			if want.Err != proto.OK {
				rt.Fatalf("rewind: %v %s", want.Err, want.Why)
			}
			checkFollowed(rt, plain, before, wantEvents)
			checkReconnected(rt, plain, before, last)
			if err := plain.Check(); err != nil {
				rt.Fatal(err)
			}
		}
		s.verify(t, captured)
	})
}

// view is what a client has of a path that it watches: for its data what getData shows but what children leave there, for its
// children what getChildren shows of them.
type view struct {
	there           bool
	data            string
	null            bool
	version         int32
	czxid, mzxid    proto.Zxid
	mtimeMs         int64
	children        string
	pzxid           proto.Zxid
	cversion        int32
	acl             *acl
	statsOfTheQuota bool // the server writes the data, and tells nobody
}

// viewOf reads one path.
func viewOf(t *Tree, path string) view {
	n := t.get(path)
	if n == nil {
		return view{}
	}
	names := make([]string, 0)
	for _, id := range t.children(n) {
		names = append(names, t.at(id).name())
	}
	slices.Sort(names)
	target, stats := quotaTarget(path, statsName)
	r := n.record()
	v := view{
		there: true, data: r.data, null: r.null, version: r.version, czxid: r.czxid, mzxid: r.mzxid, mtimeMs: r.mtimeMs,
		children: strings.Join(names, "/"), pzxid: r.pzxid, cversion: r.cversion, acl: t.aclOf(n),
		statsOfTheQuota: stats && t.quotas[target] != nil,
	}
	if v.statsOfTheQuota {
		v.data, v.null = "", false
	}
	return v
}

func viewAll(t *Tree) map[string]view {
	views := make(map[string]view)
	for n := range t.znodes.all() {
		views[n.path()] = viewOf(t, n.path())
	}
	return views
}

// withData and withChildren take what one read shows from another view.
func (v view) withData(fresh view) view {
	fresh.children, fresh.pzxid, fresh.cversion = v.children, v.pzxid, v.cversion
	return fresh
}

func (v view) withChildren(fresh view) view {
	v.children, v.pzxid, v.cversion = fresh.children, fresh.pzxid, fresh.cversion
	return v
}

// same compares but the ACL, of which no watch tells.
func (v view) same(w view) bool {
	v.acl, w.acl, v.statsOfTheQuota, w.statsOfTheQuota = nil, nil, false, false
	return v == w
}

// checkFollowed does what clients do that watch all paths, those too where there is nothing: they read anew what the events name. It
// also looks for events that tell of nothing, and for those that not everybody sees who may read the znode now.
func checkFollowed(rt *rapid.T, t *Tree, before map[string]view, events []Event) {
	after := viewAll(t)
	cache := make(map[string]view)
	for path := range after {
		cache[path] = before[path]
	}
	for path, v := range before {
		cache[path] = v
	}
	for _, e := range events {
		was, is := before[e.Path], after[e.Path]
		another := was.there && is.there && was.czxid != is.czxid
		told := false
		switch e.Type {
		case proto.EventDeleted:
			told = was.there && (!is.there || another)
			cache[e.Path] = is
		case proto.EventCreated:
			told = is.there && (!was.there || another)
			cache[e.Path] = is // nobody had read the children of what was not there
		case proto.EventDataChanged:
			told = is.statsOfTheQuota || !another && !was.same(was.withData(is))
			cache[e.Path] = cache[e.Path].withData(is)
		case proto.EventChildrenChanged:
			told = another || !was.same(was.withChildren(is))
			cache[e.Path] = cache[e.Path].withChildren(is)
		}
		if !told {
			rt.Fatalf("%v of %q: before %+v, after %+v", e.Type, e.Path, was, is)
		}
		if is.there && !another && e.Type != proto.EventDeleted && e.ACL.acl != is.acl {
			rt.Fatalf("%v of %q is for those of %v, now they are %v", e.Type, e.Path, e.ACL.acl.acls(), is.acl.acls())
		}
	}
	for path, has := range cache {
		if is := after[path]; !has.same(is) && !(is.statsOfTheQuota && has.withData(is).same(is)) {
			rt.Fatalf("a client has %+v of %q, there is %+v; events %v", has, path, is, events)
		}
	}
}

// checkReconnected does what the server does for a client that was not connected, and has seen no zxid above last.
func checkReconnected(rt *rapid.T, t *Tree, before map[string]view, last proto.Zxid) {
	for path, was := range before {
		is := viewOf(t, path)
		mzxid, pzxid, ok := t.Lookup(path)
		if ok != is.there || ok && !was.same(is) && (mzxid <= last || pzxid <= last) {
			rt.Fatalf("a client that was away at %v has %+v of %q, there is %+v at %v and %v", last, was, path, is, mzxid, pzxid)
		}
	}
}

// TestSnapshot_Golden reads what version 1 wrote, and writes it again. The file is never written anew.
func TestSnapshot_Golden(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata/golden", "snapshot-v1.txt"))
	if err != nil {
		t.Fatal(err)
	}
	golden, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
	if err != nil {
		t.Fatal(err)
	}
	tree := goldenTree(t)
	if got := tree.Snapshot(); !bytes.Equal(got, golden) {
		t.Errorf("written now:\n%x", got)
	}
	want := tree.Digest()
	if res, _ := tree.Apply(Header{Zxid: tree.LastZxid() + 1}, &Request{Op: proto.OpDelete,
		Body: (&proto.PathVersionRequest{Path: "/null", Version: -1}).Append(nil)}); res.Err != proto.OK {
		t.Fatal(res.Err)
	}
	body := bytes.Clone(golden)
	if res, _ := tree.Apply(Header{Zxid: tree.LastZxid() + 1}, &Request{Op: proto.OpRewind, Body: body}); res.Err != proto.OK {
		t.Fatal(res.Err, res.Why)
	}
	clear(body) // nothing of it is kept
	if err := tree.Check(); err != nil {
		t.Error(err)
	}
	if got := tree.Digest() - tree.rewoundDigest(tree.rewound); got != want {
		t.Errorf("digest but for the rewind is %#x, want %#x", got, want)
	}
}

// TestRewind_Refuses takes a good snapshot and spoils one thing. Then nothing has changed, and Why says what is wrong.
func TestRewind_Refuses(t *testing.T) {
	now := fuzzTree(t)
	fuzz, root := now.get("/fuzz").record(), now.root.record()
	with := func(change func(r *record)) record {
		r := fuzz
		change(&r)
		return r
	}
	for _, c := range []struct {
		name, want string
		body       []byte
	}{
		{"nothing", "truncated", nil},
		{"no hash", "truncated", []byte{snapshotVersion, 0, 0, 0, 0, 0, 0, 0}},
		{"another version", "snapshot of version 2", []byte{2}},
		{"something else", "snapshot of version 60", []byte("<xml version='1.0'/>")},
		{"only a hash", "truncated", snapshotOf(nil)},
		{"no znodes", "lacks znode /", snapshotOf([]byte{3})},
		{"the zxid of the rewind", "which is not over here", snapshotOf([]byte{4}, sysZnodes...)},
		{"a zxid below 0", "which is not over here", snapshotOf(binary.AppendUvarint(nil, 1<<63), sysZnodes...)},
		{"no root", "its parent is missing", snapshotOf([]byte{3}, sysZnodes[1:]...)},
		{"no /zookeeper", "its parent is missing", snapshotOf([]byte{3}, sysZnodes[0], sysZnodes[2])},
		{"no quotas", "lacks znode /zookeeper/quota", snapshotOf([]byte{3}, sysZnodes[:2]...)},
		{"members", "no part of a snapshot", snapshotOf([]byte{3}, slices.Insert(slices.Clone(sysZnodes), 2, pathRecord{configPath, &root})...)},
		{"below members", "no part of a snapshot", snapshotOf([]byte{3}, slices.Insert(slices.Clone(sysZnodes), 2, pathRecord{configPath + "/x", &root})...)},
		{"another root", "of another tree: its znode / ", snapshotOf([]byte{3}, append([]pathRecord{{"/", &fuzz}}, sysZnodes[1:]...)...)},
		{"another kind of /zookeeper", "of another tree: its znode /zookeeper ", snapshotOf([]byte{3}, sysZnodes[0], pathRecord{zookeeperPath, &record{kind: container}}, sysZnodes[2])},
		{"a znode twice", "comes after", snapshotOf([]byte{3}, append(slices.Clone(sysZnodes), sysZnodes[2])...)},
		{"znodes not sorted", "comes after", snapshotOf([]byte{3}, append(slices.Clone(sysZnodes), pathRecord{"/fuzz", &fuzz})...)},
		{"a child of nothing", "its parent is missing", withZnode("/a/b", fuzz)},
		{"a path", "invalid path", withZnode("/a/", fuzz)},
		{"no path", "invalid path", withZnode("", fuzz)},
		{"czxid of the future", "zxids 0x4 0x4", withZnode("/a", with(func(r *record) { r.czxid, r.mzxid, r.pzxid = 4, 4, 4 }))},
		{"mzxid of the future", "the last one is 0x3", withZnode("/a", with(func(r *record) { r.mzxid = 4 }))},
		{"pzxid of the future", "the last one is 0x3", withZnode("/a", with(func(r *record) { r.pzxid = 4 }))},
		{"mzxid before czxid", "the last one is 0x3", withZnode("/a", with(func(r *record) { r.mzxid = 1 }))},
		{"pzxid before czxid", "the last one is 0x3", withZnode("/a", with(func(r *record) { r.pzxid = 1 }))},
		{"zxids below 0", "the last one is 0x3", withZnode("/a", with(func(r *record) { r.czxid, r.mzxid, r.pzxid = -1, -1, -1 }))},
		{"no time to live", "lives for 0 ms", withZnode("/a", with(func(r *record) { r.kind = ttl }))},
		{"too long a life", "lives for 1099511627776 ms", withZnode("/a", with(func(r *record) { r.kind, r.owner = ttl, maxTTLMs+1 }))},
		{"an ephemeral of nobody", "belongs to no session", withZnode("/a", with(func(r *record) { r.kind = ephemeral }))},
		{"a kind", "first byte is 0x10", withZnode("/a", with(func(r *record) { r.kind, r.null = 16, false }))},
		{"null data", "null data of 1 bytes", withZnode("/a", with(func(r *record) { r.null, r.data = true, "x" }))},
		{"a child of an ephemeral", "or ephemeral", snapshotOf([]byte{3}, slices.Insert(slices.Clone(sysZnodes), 1,
			pathRecord{"/a", &record{kind: ephemeral, owner: fuzzSession}}, pathRecord{"/a/b", &record{}})...)},
		{"a child of an ephemeral that is gone", "or ephemeral", snapshotOf([]byte{3}, slices.Insert(slices.Clone(sysZnodes), 1,
			pathRecord{"/a", &record{kind: ephemeral, owner: 5}}, pathRecord{"/a/b", &record{}})...)},
		{"a short record", "truncated", snapshotOf([]byte{3, 1, '/', 3, 0, 0, 0})},
		{"a length", "bytes are left", snapshotOf([]byte{3, 1, '/', 30, 0})},
		{"a path alone", "behind znode \"/zookeeper/quota\"", snapshotOf(append(unhashed(snapshotOf([]byte{3}, sysZnodes...))[1:], 2, '/', 'x'))},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree := fuzzTree(t)
			before := tree.meta()
			res, events := tree.Apply(Header{Zxid: 4}, &Request{Op: proto.OpRewind, Body: c.body})
			if res.Err != proto.ErrMarshallingError || !strings.Contains(res.Why, c.want) {
				t.Errorf("%v %s, want %q", res.Err, res.Why, c.want)
			}
			if before.lastZxid = 4; tree.meta() != before || len(events) != 0 {
				t.Errorf("%+v and events %v, want %+v", tree.meta(), events, before)
			}
			if err := tree.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestRewind_ToAnotherTree: a snapshot of another tree whose zxids fit cannot be told from one of this tree. What it says of a
// path may be true of no znode here, and the tree is sound all the same.
func TestRewind_ToAnotherTree(t *testing.T) {
	tree := fuzzTree(t)
	fuzz := tree.get("/fuzz").record()
	fuzz.kind, fuzz.owner = ttl, 5 // same czxid, another kind: its child below is another one too, whatever its czxid
	child := tree.get("/fuzz/e").record()
	list := tree.aclKey([]proto.ACL{{Perms: 1, ID: proto.ID{Scheme: "ip", ID: "10.0.0.1"}}}) // twice, and new here
	a, b := record{acl: list}, record{acl: list}
	body := snapshotOf([]byte{3}, slices.Insert(slices.Clone(sysZnodes), 1,
		pathRecord{"/a", &a}, pathRecord{"/b", &b}, pathRecord{"/fuzz", &fuzz}, pathRecord{"/fuzz/e", &child})...)
	res, events := tree.Apply(Header{Zxid: 4}, &Request{Op: proto.OpRewind, Body: body})
	var got []string
	for _, e := range events {
		if e.Type != proto.EventChildrenChanged {
			got = append(got, e.Type.String()+" "+e.Path)
		}
	}
	want := []string{"NodeDeleted /fuzz/e", "NodeDeleted /fuzz", "NodeCreated /a", "NodeCreated /b", "NodeCreated /fuzz", "NodeCreated /fuzz/e"}
	if res.Err != proto.OK || !slices.Equal(got, want) {
		t.Errorf("%v %s, events %q, want %q", res.Err, res.Why, got, want)
	}
	if err := tree.Check(); err != nil {
		t.Error(err)
	}
}

// TestRewind_TellsOfDataOfAnotherTree: in one tree, same zxids mean same data.
func TestRewind_TellsOfDataOfAnotherTree(t *testing.T) {
	for name, data := range map[string][]byte{"other data": []byte("x"), "empty for null": {}} {
		t.Run(name, func(t *testing.T) {
			tree := fuzzTree(t)
			fuzz, child := tree.get("/fuzz").record(), tree.get("/fuzz/e").record()
			fuzz.setData(data)
			body := snapshotOf([]byte{3}, slices.Insert(slices.Clone(sysZnodes), 1, pathRecord{"/fuzz", &fuzz}, pathRecord{"/fuzz/e", &child})...)
			res, events := tree.Apply(Header{Zxid: 4}, &Request{Op: proto.OpRewind, Body: body})
			told := slices.ContainsFunc(events, func(e Event) bool { return e.Type == proto.EventDataChanged && e.Path == "/fuzz" })
			if res.Err != proto.OK || !told {
				t.Errorf("%v %s, events %v", res.Err, res.Why, events)
			}
			if err := tree.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// FuzzRewind: arbitrary znodes behind the version, with a hash that fits, are either put in the place of those that are there, and leave
// a sound tree, or change nothing.
func FuzzRewind(f *testing.F) {
	for _, tree := range []*Tree{fuzzTree(f), fuzzEnsemble(f), New(Options{})} {
		snapshot := unhashed(tree.Snapshot())
		f.Add(snapshot[1:])
	}
	fuzz := fuzzTree(f).get("/fuzz").record()
	for _, k := range []kind{ephemeral, container, ttl} {
		r := fuzz
		if r.kind = k; k != container {
			r.owner = fuzzSession & maxTTLMs
		}
		f.Add(unhashed(withZnode("/a", r))[1:])
	}
	limits := []pathRecord{{quotaPath + "/fuzz", &fuzz}, {quotaPath + "/fuzz" + limitsName, &fuzz}, {quotaPath + "/fuzz" + statsName, &fuzz}}
	f.Add(unhashed(snapshotOf([]byte{3}, append(slices.Clone(sysZnodes), limits...)...))[1:])
	f.Fuzz(func(t *testing.T, b []byte) {
		tree, s := fuzzEnsemble(t), make(store)
		s.verify(t, tree)
		before := tree.meta()
		body := snapshotOf(b)
		res, events := tree.Apply(Header{Zxid: tree.LastZxid() + 1}, &Request{Op: proto.OpRewind, Body: body})
		s.verify(t, tree)
		if res.Err != proto.OK {
			if before.lastZxid = tree.LastZxid(); tree.meta() != before || len(events) > 0 || res.Why == "" {
				t.Fatalf("%v (%s) left %+v of %+v, events %v", res.Err, res.Why, tree.meta(), before, events)
			}
			return
		}
		// The same once more has nothing to do.
		again := tree.Digest() - tree.rewoundDigest(tree.rewound)
		res, events = tree.Apply(Header{Zxid: tree.LastZxid() + 1}, &Request{Op: proto.OpRewind, Body: body})
		for _, e := range events {
			if _, stats := quotaTarget(e.Path, statsName); !stats || e.Type != proto.EventDataChanged {
				t.Fatalf("again: %v of %q", e.Type, e.Path)
			}
		}
		if got := tree.Digest() - tree.rewoundDigest(tree.rewound); res.Err != proto.OK || got != again {
			t.Fatalf("again: %v (%s), digest %#x, want %#x", res.Err, res.Why, got, again)
		}
		s.verify(t, tree)
	})
}

// pathRecord is a znode of a snapshot.
type pathRecord struct {
	path string
	rec  *record
}

// sysZnodes are what no snapshot may lack.
var sysZnodes = []pathRecord{{"/", &record{}}, {zookeeperPath, &record{}}, {quotaPath, &record{}}}

// withZnode is a snapshot of zxid 3 with one more znode, at a path before /zookeeper.
func withZnode(path string, r record) []byte {
	return snapshotOf([]byte{3}, slices.Insert(slices.Clone(sysZnodes), 1, pathRecord{path, &r})...)
}

// snapshotOf puts a version before b and behind it znodes and a hash.
func snapshotOf(b []byte, znodes ...pathRecord) []byte {
	b = append([]byte{snapshotVersion}, b...)
	for _, n := range znodes {
		rec := appendRecord(nil, n.rec)
		b = append(binary.AppendUvarint(appendText(b, n.path), uint64(len(rec))), rec...)
	}
	return binary.BigEndian.AppendUint64(b, xxhash.Sum64(b))
}

// unhashed takes the hash away.
func unhashed(snapshot []byte) []byte { return snapshot[:len(snapshot)-snapshotHashBytes] }
