package datatree

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/gozkd/gozkd/proto"
)

// TestCheck_Finds breaks one thing at a time. testdata/check has what Check says of it.
func TestCheck_Finds(t *testing.T) {
	n := func(tree *Tree, path string) *znode { return tree.get(path) }
	breaks := map[string]func(tree *Tree){
		"nothing": func(*Tree) {},
		"no root": func(tree *Tree) { tree.root = nil },
		"no root anywhere": func(tree *Tree) {
			tree.index.drop(tree.root)
			tree.root = nil
		},
		"another root":       func(tree *Tree) { tree.root = n(tree, "/fuzz") },
		"root with a parent": func(tree *Tree) { tree.root.parent = n(tree, "/fuzz").id },
		"parent":             func(tree *Tree) { n(tree, "/fuzz/e").parent = tree.root.id },
		"no parent, which is gone": func(tree *Tree) {
			n(tree, "/fuzz/e").parent = 0
			tree.index.drop(n(tree, "/fuzz"))
		},
		"no parent":           func(tree *Tree) { n(tree, "/fuzz/e").parent = 0 },
		"place in the parent": func(tree *Tree) { n(tree, "/fuzz").childIdx = 0 },
		"place after the last": func(tree *Tree) {
			n(tree, "/fuzz").childIdx = int32(len(tree.children(tree.root)))
		},
		"index":                func(tree *Tree) { tree.index.drop(n(tree, "/fuzz/e")) },
		"system znode":         func(tree *Tree) { tree.remove(n(tree, configPath)) },
		"znode without quotas": func(tree *Tree) { tree.index.drop(n(tree, quotaPath)) },
		"path": func(tree *Tree) {
			tree.insert(tree.newZnode(n(tree, "/fuzz"), "/fuzz/.", &record{}))
		},
		"ephemeral's list":  func(tree *Tree) { tree.sessions[fuzzSession].ephemerals = nil },
		"ephemeral's place": func(tree *Tree) { n(tree, "/fuzz/e").ownerIdx = 1 },
		"owner":             func(tree *Tree) { delete(tree.sessions, fuzzSession) },
		"ephemeral of another session": func(tree *Tree) {
			from, to := tree.sessions[fuzzSession], tree.sessions[otherSession]
			from.ephemerals, to.ephemerals = nil, from.ephemerals
		},
		"ephemeral with children": func(tree *Tree) {
			tree.insert(tree.newZnode(n(tree, "/fuzz/e"), "/fuzz/e/x", &record{}))
		},
		"session by another id": func(tree *Tree) {
			tree.sessions[7] = tree.sessions[otherSession]
			delete(tree.sessions, otherSession)
		},
		"collectable":                     func(tree *Tree) { tree.collectable = append(tree.collectable, n(tree, "/fuzz").id) },
		"container that is not collected": func(tree *Tree) { tree.collectable = nil },
		"kind":                            func(tree *Tree) { spoil(tree, func(r *record) { r.kind = ephemeral }) },
		"data that is null and is not":    func(tree *Tree) { spoil(tree, func(r *record) { r.null, r.data = true, "x" }) },
		"zxids":                           func(tree *Tree) { spoil(tree, func(r *record) { r.mzxid = tree.lastZxid + 1 }) },
		"large data":                      func(tree *Tree) { n(tree, "/large").blob().large.data += "x" },
		"hash of large data":              func(tree *Tree) { n(tree, "/large").blob().large.hash++ },
		"small data that is stored as large": func(tree *Tree) {
			spoil(tree, func(r *record) { r.data = "x" })
			text := n(tree, "/fuzz").blob().text
			head := text[:len(text)-1]
			n(tree, "/fuzz").setBlob(blob{text: head, large: &largeBlob{text: head, data: "x"}})
		},
		"another encoding": func(tree *Tree) {
			text := n(tree, "/fuzz").blob().text
			n(tree, "/fuzz").setBlob(blob{text: text[:len(text)-1] + "\x80\x00"}) // the length of the ACL
		},
		"bytes of names":        func(tree *Tree) { tree.dirs.At(n(tree, "/fuzz").dir).nameBytes++ },
		"list without children": func(tree *Tree) { n(tree, "/large").dir, _ = tree.dirs.Alloc() },
		"digest of a znode":     func(tree *Tree) { spoil(tree, func(r *record) { r.version++ }) },
		"digest of a session": func(tree *Tree) {
			rec := *tree.sessions[fuzzSession].rec
			rec.server++
			tree.sessions[fuzzSession].rec = &rec
		},
		"session of later": func(tree *Tree) {
			rec := *tree.sessions[fuzzSession].rec
			rec.connEpoch = tree.lastZxid + 1
			tree.sessions[fuzzSession].rec = tree.sealSession(rec)
		},
		"digest":     func(tree *Tree) { tree.digest++ },
		"bytes":      func(tree *Tree) { tree.dataSize++ },
		"ephemerals": func(tree *Tree) { tree.numEphemerals++ },
		"znodes":     func(tree *Tree) { tree.index.n++ },
		"weight":     func(tree *Tree) { tree.weight++ },
		"limit of nothing": func(tree *Tree) {
			tree.limit = Limit{Cause: LimitedByDisk}
			tree.singles[limitPrefix] = string(appendLimit(nil, tree.limit))
		},
		"digest of the limit": func(tree *Tree) { tree.limit = Limit{Weight: 1 << 20, Cause: LimitedByDisk} },
		"full and about to end": func(tree *Tree) {
			tree.replaceLimit(Limit{Weight: 3600, Cause: LimitedByDisk, Full: true})
		},
		"full for too long": func(tree *Tree) {
			tree.replaceLimit(Limit{Weight: 3700, Cause: LimitedByDisk, Full: true})
		},
		"full and far from it": func(tree *Tree) {
			tree.replaceLimit(Limit{Weight: 1 << 30, Cause: LimitedByDisk, Full: true})
		},
		"ACL references":         func(tree *Tree) { tree.aclOf(n(tree, configPath)).refs++ },
		"ACL table":              func(tree *Tree) { clear(tree.acls.numbers) },
		"ACL by another number":  func(tree *Tree) { tree.acls.numbers[tree.aclOf(n(tree, configPath)).key]++ },
		"undo log":               func(tree *Tree) { tree.undo = make([]change, 1) },
		"multi without end":      func(tree *Tree) { tree.inMulti = true },
		"kept statistics":        func(tree *Tree) { tree.keepStats = true },
		"quota":                  func(tree *Tree) { tree.quotas["/fuzz"] = &quota{path: "/fuzz"} },
		"limits without a quota": func(tree *Tree) { delete(tree.quotas, "/large") },
		"quota's count":          func(tree *Tree) { tree.quotas["/large"].bytes++ },
		"quota of another path": func(tree *Tree) {
			tree.quotas["/fuzz"] = tree.quotas["/large"]
			delete(tree.quotas, "/large")
		},
		"zxid":                  func(tree *Tree) { tree.lastZxid = 2 },
		"digest of the members": func(tree *Tree) { tree.ensemble.version-- },
		"members not counted": func(tree *Tree) {
			tree.ensemble = ensembleRecord{}
			delete(tree.singles, ensemblePrefix)
		},
		"zxid of the members": func(tree *Tree) {
			rec := tree.ensemble
			rec.pending.Serial = tree.lastZxid + 1
			tree.setEnsemble(rec)
		},
		"members pending for long": func(tree *Tree) {
			rec := tree.ensemble
			rec.version = rec.pending.Serial
			tree.setEnsemble(rec)
		},
		"no members": func(tree *Tree) {
			rec := tree.ensemble
			rec.current = nil
			tree.setEnsemble(rec)
		},
		"members of nothing": func(tree *Tree) {
			rec := tree.ensemble
			rec.pending.Serial = 0
			tree.setEnsemble(rec)
		},
		"number":                     func(tree *Tree) { n(tree, "/fuzz").id++ },
		"znode of nobody":            func(tree *Tree) { tree.newZnode(tree.root, "/x", &record{}) },
		"child that is none":         func(tree *Tree) { tree.children(tree.root)[0] = 1000 },
		"child beyond all pages":     func(tree *Tree) { tree.children(tree.root)[0] = 1 << 20 },
		"child of another":           func(tree *Tree) { tree.children(n(tree, "/fuzz"))[0] = n(tree, "/large").id },
		"ephemeral that is none":     func(tree *Tree) { tree.sessions[fuzzSession].ephemerals[0] = 1000 },
		"ephemeral beyond all pages": func(tree *Tree) { tree.sessions[fuzzSession].ephemerals[0] = 1 << 20 },
		"children of nobody":         func(tree *Tree) { tree.dirs.Alloc() },
		"number of an ACL":           func(tree *Tree) { n(tree, configPath).acl = 0 },
		"ACL that is none":           func(tree *Tree) { n(tree, configPath).acl = 1000 },
		"ACL after the last":         func(tree *Tree) { n(tree, configPath).acl = uint32(len(tree.acls.lists) + 1) },
		"ACL that is free": func(tree *Tree) {
			tree.acls.lists = append(tree.acls.lists, nil)
			n(tree, "/fuzz").acl = uint32(len(tree.acls.lists))
		},
		"note of what is not so": func(tree *Tree) {
			tree.dirty.noteOf(n(tree, "/fuzz")).first, tree.dirty.noteOf(n(tree, "/fuzz")).size = tree.root.first, tree.root.size
		},
		"note of an earlier blob":           func(tree *Tree) { noteFirst(tree, tree.seal("/fuzz", &record{version: 7})) },
		"note of a path that is gone":       func(tree *Tree) { noteFirst(tree, tree.seal("/gone", &record{})) },
		"note by another number":            func(tree *Tree) { tree.dirty.noteOf(n(tree, "/fuzz")).id = n(tree, "/large").id },
		"note that its znode does not know": func(tree *Tree) { n(tree, "/fuzz").note = 0 },
		"note of what is there as gone":     func(tree *Tree) { tree.dirty.noteOf(n(tree, "/fuzz")).id = 0 },
		"note that comes twice": func(tree *Tree) {
			for range 2 {
				_, e := tree.dirty.notes.Alloc()
				e.first, e.size = tree.root.first, tree.root.size
			}
		},
		"too much to say": func(tree *Tree) {
			for n := range tree.znodes.All() {
				n.setBlob(tree.seal("/fuzz", &record{czxid: -1}))
			}
		},
	}
	datadriven.RunTest(t, "testdata/check", func(t *testing.T, d *datadriven.TestData) string {
		tree := checkTree(t)
		breaks[d.Input](tree)
		delete(breaks, d.Input)
		lines := strings.Split(fmt.Sprint(tree.Check()), "\n")
		slices.Sort(lines) // some of them in the order of a map
		return strings.Join(lines, "\n")
	})
	for name := range breaks {
		t.Errorf("testdata/check lacks %q", name)
	}
}

const otherSession = 1<<56 | 7

// checkTree has each thing that Check knows.
func checkTree(t *testing.T) *Tree {
	t.Helper()
	tree := fuzzEnsemble(t)
	create := func(op proto.OpCode, path, data string, mode proto.CreateMode) Request {
		r := &proto.CreateRequest{Path: path, Data: []byte(data), ACL: proto.OpenACL(), Mode: mode}
		return Request{Op: op, Body: r.Append(nil, op)}
	}
	for _, r := range []Request{
		{Op: proto.OpCreateSession, Server: 1, Body: (&CreateSessionBody{TimeoutMs: 1}).Append(nil)},
		create(proto.OpCreate, "/large", strings.Repeat("x", largeBytes+37), 0), // with which the state weighs 95 percent of 3600
		create(proto.OpCreate, quotaPath+"/large", "", 0),
		create(proto.OpCreate, quotaPath+"/large"+proto.QuotaLimits, "count=5", 0),
		create(proto.OpCreateContainer, "/container", "", proto.ModeContainer),
	} {
		if res, _ := tree.Apply(Header{tree.LastZxid() + 1, 1}, &r); res.Err != proto.OK {
			t.Fatalf("%v: %v", r.Op, res.Err)
		}
	}
	return tree
}

// noteFirst changes the note of /fuzz.
func noteFirst(tree *Tree, b blob) {
	e := tree.dirty.noteOf(tree.get("/fuzz"))
	n := znode{}
	n.setBlob(b)
	e.first, e.size = n.first, n.size
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
