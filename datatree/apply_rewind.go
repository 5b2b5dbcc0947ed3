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
			n := t.newZnode(t.get(proto.ParentPath(w.path)), w.path, &w.rec)
			t.insert(n)
			made = append(made, n)
		case !w.same:
			changed = append(changed, change{what: replaced, n: w.now, was: w.now.blob()})
			t.replace(w.now, &w.rec)
		}
	}
	t.keepStats = false
	t.emitRewind(x, gone, made, changed)
	for _, n := range gone {
		t.discard(n)
	}
	for _, q := range t.quotas { // each has a stats znode of its own, so their order does not show
		t.writeStats(q)
	}
	t.setRewound(x.Zxid)
	return proto.OK
}

// removeUnwanted removes all znodes that a snapshot lacks, children first, and returns them in this order, not discarded yet.
func (t *Tree) removeUnwanted(s *snapshotReader) []*znode {
	var gone []*znode
	for n := range t.znodes.all() {
		if w := s.at[n.path()]; (w == nil || w.now != n) && !ofConfig(n.path()) {
			gone = append(gone, n)
		}
	}
	slices.SortFunc(gone, func(a, b *znode) int { return byPath(b, a) })
	for _, n := range gone {
		t.remove(n)
	}
	return gone
}

// emitRewind tells what has been done.
func (t *Tree) emitRewind(x *txn, gone, made []*znode, changed []change) {
	told := make(map[znodeID]bool)
	for _, n := range gone {
		t.emit(x, proto.EventDeleted, n)
		t.emit(x, proto.EventChildrenChanged, t.parent(n))
		told[n.parent] = true
	}
	for _, n := range made {
		t.emit(x, proto.EventCreated, n)
		t.emit(x, proto.EventChildrenChanged, t.parent(n))
		told[n.parent] = true
	}
	for _, c := range changed {
		is, was := c.n.record(), c.was.record()
		if is.mzxid != was.mzxid || is.data != was.data || is.null != was.null {
			t.emit(x, proto.EventDataChanged, c.n)
		}
		if is.pzxid != was.pzxid && !told[c.n.id] {
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
