package datatree

import "github.com/gozkd/gozkd/proto"

// All changes of znodes go through insert, remove, replace and update. They keep the indexes, the
// digest, the counts, the notes for a checkpoint and the undo log consistent.

// newZnode makes a znode from a record; insert adds the znode to the tree.
func (t *Tree) newZnode(parent *znode, path string, r *record) *znode {
	return t.place(parent, t.seal(path, r), r.acl)
}

// place makes a znode from a blob and the encoding of its ACL.
func (t *Tree) place(parent *znode, b blob, acl string) *znode {
	id, n := t.znodes.alloc()
	n.id = id
	n.setBlob(b)
	n.acl = t.acls.retain(acl)
	if parent != nil {
		n.parent = parent.id
	}
	return n
}

// discard frees a znode that has been removed; its id may be reused. During a multi, nothing is
// freed, because the multi may be rolled back.
func (t *Tree) discard(n *znode) {
	if t.inMulti {
		return
	}
	t.acls.release(n.acl)
	t.znodes.free(n.id)
}

// insert adds n, which comes from newZnode or remove.
func (t *Tree) insert(n *znode) {
	t.link(n)
	t.noteChange(n, true)
	if t.inMulti {
		t.undo = append(t.undo, change{what: inserted, n: n})
	}
	t.quotaAfterInsert(n)
}

// remove removes n, which must have no children. n can be read until the caller discards it.
func (t *Tree) remove(n *znode) {
	t.quotaBeforeRemove(n)
	if t.inMulti {
		t.undo = append(t.undo, change{what: removed, n: n})
	}
	t.index.drop(n)
	t.dropChild(t.parent(n), n)
	b := n.blob()
	t.unown(n)
	if !b.pending() {
		t.digest -= b.hash()
	}
	t.dataSize -= b.dataSize()
	t.noteRemoval(n)
}

// replace gives n a record with the same owner and kind.
func (t *Tree) replace(n *znode, r *record) {
	is := t.seal(n.path(), r)
	t.swap(n, is, r.acl, is.dataSize()-n.blob().dataSize())
}

// update is replace for a caller that knows by how many bytes the data grows, which saves reading
// both blobs.
func (t *Tree) update(n *znode, r *record, grown int64) { t.swap(n, t.seal(n.path(), r), r.acl, grown) }

// swap gives n a blob with the same path, owner and kind, an ACL, and data that is longer by grown
// bytes.
func (t *Tree) swap(n *znode, is blob, acl string, grown int64) {
	was := n.blob()
	if t.inMulti {
		t.undo = append(t.undo, change{what: replaced, n: n, was: was})
	}
	n.setBlob(is)
	if t.acls.key(n.acl) != acl {
		before := n.acl
		n.acl = t.acls.retain(acl)
		t.acls.release(before)
	}
	if !was.pending() {
		t.digest -= was.hash()
	}
	switch {
	case !is.pending():
		t.digest += is.hash()
	case !was.pending(): // otherwise n is on the list already
		t.scratch.unhashed = append(t.scratch.unhashed, n)
	}
	t.noteChange(n, false)
	if grown != 0 {
		t.dataSize += grown
		t.account(n, 0, grown)
	}
}

// hashPending adds what is missing to the digest, at the end of Apply: a multi that creates ten
// thousand children of a znode with large data hashes that data once.
func (t *Tree) hashPending() {
	for _, n := range t.scratch.unhashed {
		// The znode may have been deleted, and its slot may hold another one.
		if n.first != nil && n.blob().pending() {
			t.digest += n.blob().hash()
			t.scratch.nHashed++
		}
	}
	t.scratch.unhashed = reuse(t.scratch.unhashed)
}

// link does the part of insert that New and Restore need too.
func (t *Tree) link(n *znode) {
	b := n.blob()
	t.linkSealed(n, b.hash(), b.dataSize())
}

// linkSealed is link for a znode whose hash and data size are known.
func (t *Tree) linkSealed(n *znode, hash uint64, dataSize int64) {
	t.index.put(n)
	if p := t.parent(n); p != nil {
		t.addChild(p, n)
	}
	t.own(n)
	t.digest += hash
	t.dataSize += dataSize
}

// own lists n with its session or in collectable.
func (t *Tree) own(n *znode) {
	list := t.ownerList(n)
	if list == nil {
		return
	}
	if n.kind() == ephemeral {
		t.numEphemerals++
	}
	n.ownerIdx = int32(len(*list))
	*list = append(*list, n.id)
}

func (t *Tree) unown(n *znode) {
	list := t.ownerList(n)
	if list == nil {
		return
	}
	if n.kind() == ephemeral {
		t.numEphemerals--
	}
	*list = swapRemove(*list, n.ownerIdx, func(m znodeID, i int32) { t.at(m).ownerIdx = i })
}

func (t *Tree) ownerList(n *znode) *[]znodeID {
	switch n.kind() {
	case ephemeral:
		r := n.record()
		return &t.sessions[proto.SessionID(r.owner)].ephemerals
	case container, ttl:
		return &t.collectable
	}
	return nil
}

// change is an entry of the undo log.
type change struct {
	what changeKind
	n    *znode
	was  blob // replaced only
}

type changeKind uint8

const (
	inserted changeKind = iota
	removed
	replaced
)

// commit clears the undo log and frees the removed znodes.
func (t *Tree) commit() {
	t.inMulti = false
	for i := range t.undo {
		if t.undo[i].what == removed {
			t.discard(t.undo[i].n)
		}
	}
	t.undo = reuse(t.undo)
}

// rollback undoes the entries of the undo log, last first, and clears it.
func (t *Tree) rollback() {
	t.inMulti, t.keepStats = false, true
	for i := len(t.undo) - 1; i >= 0; i-- {
		switch c := &t.undo[i]; c.what {
		case inserted:
			t.remove(c.n)
			t.discard(c.n)
		case removed:
			t.insert(c.n)
		case replaced:
			r := c.was.record()
			t.swap(c.n, c.was, r.acl, c.was.dataSize()-c.n.blob().dataSize())
		}
	}
	t.keepStats = false
	t.undo = reuse(t.undo)
}
