package datatree

import (
	"slices"

	"github.com/gozkd/gozkd/proto"
)

// rewind puts the znodes back as a snapshot has them, in one step: data, ACLs, kinds, versions, zxids, times and child
// counters, with which sequence numbers go on. Only servers propose it, on behalf of tests. What is not rewound: sessions, the
// ensemble's members, /zookeeper/config and what is below it, and the last zxid. So ephemerals whose session is gone are not put back.
//
// A znode with another czxid under the same path is another znode: that one is deleted, this one created. The events are
// those that a client would see if all was done by deletes, creates and sets, with what a read shows in the end:
//
//	Deleted          and the parent's ChildrenChanged, for each that goes, children first
//	Created          and the parent's ChildrenChanged, for each that comes, parents first
//	DataChanged      if mzxid differs, and with it version and mtime; or data alone, which the server wrote to stats
//	ChildrenChanged  if pzxid differs, and nothing above has told so
//
// ACLs fire nothing, as ever. Who sees an event is up to the ACL that its znode has in the end.
func (t *Tree) rewind(x *txn) proto.ErrCode {
	if x.Session != 0 {
		return proto.ErrUnimplemented
	}
	s, err := t.readSnapshot(x.Body, x.Zxid)
	if err != nil {
		x.res.Why = err.Error()
		return proto.ErrMarshallingError
	}
	t.keepStats = true
	gone := t.removeUnwanted(s)
	var made []*znode
	var changed []change
	for _, w := range s.all {
		switch {
		case w.now == nil:
			n := &znode{path: w.path, rec: t.sealWanted(w), parent: t.znodes.get(proto.ParentPath(w.path))}
			t.insert(n)
			made = append(made, n)
		case w.now.rec != w.rec:
			changed = append(changed, change{what: replaced, n: w.now, old: w.now.rec})
			t.replace(w.now, t.sealWanted(w))
		}
	}
	t.keepStats = false
	t.emitRewind(x, gone, made, changed)
	for _, q := range t.quotas { // each has a stats znode of its own, so their order does not show
		t.writeStats(q)
	}
	t.setRewound(x.Zxid)
	return proto.OK
}

// removeUnwanted removes all znodes that a snapshot lacks, children first, and returns them in this order.
func (t *Tree) removeUnwanted(s *snapshotReader) []*znode {
	var gone []*znode
	for n := range t.znodes.all() {
		if w := s.at[n.path]; (w == nil || w.now != n) && !ofConfig(n.path) {
			gone = append(gone, n)
		}
	}
	slices.SortFunc(gone, func(a, b *znode) int { return byPath(b, a) })
	for _, n := range gone {
		t.remove(n)
	}
	return gone
}

// sealWanted makes the record ready for the tree. The ACL is interned only now: until here no znode may have had it, so that each
// record has a copy of its own, or those that had it were removed.
func (t *Tree) sealWanted(w *wanted) *record {
	rec := *w.rec
	if rec.acl != nil {
		rec.acl = t.intern(rec.acl.list)
	}
	return t.seal(w.path, rec)
}

// emitRewind tells what has been done.
func (t *Tree) emitRewind(x *txn, gone, made []*znode, changed []change) {
	told := make(map[*znode]bool)
	for _, n := range gone {
		t.emit(x, proto.EventDeleted, n)
		t.emit(x, proto.EventChildrenChanged, n.parent)
		told[n.parent] = true
	}
	for _, n := range made {
		t.emit(x, proto.EventCreated, n)
		t.emit(x, proto.EventChildrenChanged, n.parent)
		told[n.parent] = true
	}
	for _, c := range changed {
		is, was := c.n.rec, c.old
		if is.mzxid != was.mzxid || is.data != was.data || is.null != was.null {
			t.emit(x, proto.EventDataChanged, c.n)
		}
		if is.pzxid != was.pzxid && !told[c.n] {
			t.emit(x, proto.EventChildrenChanged, c.n)
		}
	}
}

// setRewound notes the last rewind, for Lookup.
func (t *Tree) setRewound(at proto.Zxid) {
	t.digest += t.rewoundDigest(at) - t.rewoundDigest(t.rewound)
	t.rewound = at
	if t.dirty != nil {
		t.dirty.rewound = at
	}
}
