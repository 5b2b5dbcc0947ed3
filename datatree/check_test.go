package datatree

import (
	"strings"
	"testing"

	"github.com/gozkd/gozkd/proto"
)

// TestCheck_Finds breaks one invariant at a time.
func TestCheck_Finds(t *testing.T) {
	n := func(tree *Tree, path string) *znode { return tree.get(path) }
	for _, c := range []struct {
		name, want string
		do         func(tree *Tree)
	}{
		{"parent", "D1", func(tree *Tree) { n(tree, "/fuzz/e").parent = tree.root.id }},
		{"place in the parent", "D1", func(tree *Tree) { n(tree, "/fuzz").childIdx = 0 }},
		{"index", "D1", func(tree *Tree) { tree.index.drop(n(tree, "/fuzz/e")) }},
		{"system znode", "D1", func(tree *Tree) { tree.remove(n(tree, configPath)) }},
		{"path", "D1", func(tree *Tree) {
			tree.insert(tree.newZnode(n(tree, "/fuzz"), "/fuzz/.", &record{}))
		}},
		{"ephemeral's list", "D2", func(tree *Tree) { tree.sessions[fuzzSession].ephemerals = nil }},
		{"ephemeral's place", "D2", func(tree *Tree) { n(tree, "/fuzz/e").ownerIdx = 1 }},
		{"owner", "D2", func(tree *Tree) { delete(tree.sessions, fuzzSession) }},
		{"collectable", "D2", func(tree *Tree) { tree.collectable = append(tree.collectable, n(tree, "/fuzz").id) }},
		{"kind", "D2", func(tree *Tree) { spoil(tree, func(r *record) { r.kind = ephemeral }) }},
		{"bytes of names", "D3", func(tree *Tree) { tree.dirs.at(n(tree, "/fuzz").dir).nameBytes++ }},
		{"digest of a znode", "D3", func(tree *Tree) { spoil(tree, func(r *record) { r.version++ }) }},
		{"digest of a session", "D3", func(tree *Tree) {
			rec := *tree.sessions[fuzzSession].rec
			rec.server++
			tree.sessions[fuzzSession].rec = &rec
		}},
		{"digest", "D3", func(tree *Tree) { tree.digest++ }},
		{"bytes", "D3", func(tree *Tree) { tree.dataSize++ }},
		{"ephemerals", "D3", func(tree *Tree) { tree.numEphemerals++ }},
		{"znodes", "D3", func(tree *Tree) { tree.index.n++ }},
		{"ACL references", "D3", func(tree *Tree) { tree.aclOf(n(tree, configPath)).refs++ }},
		{"ACL table", "D3", func(tree *Tree) { clear(tree.acls.numbers) }},
		{"undo log", "D3", func(tree *Tree) { tree.undo = make([]change, 1) }},
		{"quota", "D3", func(tree *Tree) { tree.quotas["/fuzz"] = &quota{path: "/fuzz"} }},
		{"quota's count", "D3", func(tree *Tree) {
			limits := quotaPath + "/fuzz" + limitsName
			for _, path := range []string{proto.ParentPath(limits), limits} {
				tree.insert(tree.newZnode(n(tree, proto.ParentPath(path)), path, &record{}))
			}
			tree.quotas["/fuzz"].bytes++
		}},
		{"zxid", "D4", func(tree *Tree) { tree.lastZxid = 2 }},
		{"digest of the members", "D3", func(tree *Tree) {
			rec := *tree.ensemble
			rec.version--
			tree.ensemble = &rec
		}},
		{"members not counted", "D3", func(tree *Tree) { tree.ensemble = &ensembleRecord{} }},
		{"zxid of the members", "D4", func(tree *Tree) {
			rec := *tree.ensemble
			rec.pending.Serial = tree.lastZxid + 1
			tree.setEnsemble(rec)
		}},
		{"members pending for long", "D6", func(tree *Tree) {
			rec := *tree.ensemble
			rec.version = rec.pending.Serial
			tree.setEnsemble(rec)
		}},
		{"no members", "D6", func(tree *Tree) {
			rec := *tree.ensemble
			rec.current = nil
			tree.setEnsemble(rec)
		}},
		{"members of nothing", "D6", func(tree *Tree) {
			rec := *tree.ensemble
			rec.pending.Serial = 0
			tree.setEnsemble(rec)
		}},
		{"number", "D7", func(tree *Tree) { n(tree, "/fuzz").id++ }},
		{"znode of nobody", "D7", func(tree *Tree) { tree.newZnode(tree.root, "/x", &record{}) }},
		{"child that is none", "D1", func(tree *Tree) { tree.children(tree.root)[0] = 1000 }},
		{"ephemeral that is none", "D2", func(tree *Tree) { tree.sessions[fuzzSession].ephemerals[0] = 1000 }},
		{"children of nobody", "D7", func(tree *Tree) { tree.dirs.alloc() }},
		{"number of an ACL", "D3", func(tree *Tree) { n(tree, configPath).acl = 0 }},
		{"ACL that is none", "D3", func(tree *Tree) { n(tree, configPath).acl = 1000 }},
		{"note of what is not so", "D7", func(tree *Tree) {
			tree.dirty.noteOf(n(tree, "/fuzz")).first, tree.dirty.noteOf(n(tree, "/fuzz")).size = tree.root.first, tree.root.size
		}},
		{"note of what is there as gone", "D7", func(tree *Tree) { tree.dirty.noteOf(n(tree, "/fuzz")).id = 0 }},
		{"note that comes twice", "D7", func(tree *Tree) {
			for range 2 {
				_, e := tree.dirty.notes.alloc()
				e.first, e.size = tree.root.first, tree.root.size
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree := fuzzEnsemble(t)
			if err := tree.Check(); err != nil {
				t.Fatal(err)
			}
			c.do(tree)
			if err := tree.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Check: %v, want %s", err, c.want)
			}
		})
	}
}

// spoil changes the record of /fuzz without updating anything else.
func spoil(tree *Tree, change func(r *record)) {
	n := tree.get("/fuzz")
	r := n.record()
	change(&r)
	n.setBlob(tree.seal("/fuzz", &r))
}

// TestApply_PanicsOnAZxidThatDoesNotRise checks D4.
func TestApply_PanicsOnAZxidThatDoesNotRise(t *testing.T) {
	tree := fuzzTree(t)
	tree.SetLastZxid(tree.LastZxid().NextEpoch())
	for _, zxid := range []proto.Zxid{tree.LastZxid(), 3} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("zxid %v after %v did not panic", zxid, tree.LastZxid())
				}
			}()
			tree.Apply(Header{Zxid: zxid}, &Request{Op: proto.OpDelete})
		}()
	}
}
