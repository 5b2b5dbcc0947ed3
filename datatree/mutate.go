package datatree

import "github.com/gozkd/gozkd/proto"

// All changes of znodes go through insert, remove, replace and update. They keep the indexes, the
// digest, the counts, the notes for a checkpoint and the undo log consistent.

// discard frees a znode that has been removed; its id may be reused. During a multi, nothing is
// freed, because the multi may be rolled back.
func (st *state) discard(n *znode) {
	if st.inMulti {
		return
	}
	st.acls.release(n.acl)
	st.znodes.Free(n.id)
}

// insert adds n, which comes from newZnode or remove.
func (st *state) insert(n *znode) {
	st.link(n)
	st.dirty.noteChange(n, true)
	if st.inMulti {
		st.undo = append(st.undo, change{what: inserted, n: n})
	}
	st.quotaAfterInsert(n)
}

// remove removes n, which must have no children. n can be read until the caller discards it.
func (st *state) remove(n *znode) {
	st.quotaBeforeRemove(n)
	if st.inMulti {
		st.undo = append(st.undo, change{what: removed, n: n})
	}
	st.index.drop(n)
	st.dropChild(st.parent(n), n)
	b := n.blob()
	st.unown(n)
	if !b.pending() {
		st.digest -= b.hash()
	}
	st.dataSize -= b.dataSize()
	st.weight -= b.weight()
	st.dirty.noteRemoval(n)
}

// replace gives n a record with the same owner and kind.
func (st *state) replace(n *znode, r *record) {
	is := st.seal(n.path(), r)
	st.swap(n, is, r.acl, is.dataSize()-n.blob().dataSize())
}

// update is replace for a caller that knows how much the data grows, which saves reading the blobs.
func (st *state) update(n *znode, r *record, grown int64) {
	st.swap(n, st.seal(n.path(), r), r.acl, grown)
}

// swap gives n a blob with the same path, owner and kind, an ACL, and data longer by grown bytes.
func (st *state) swap(n *znode, is blob, acl string, grown int64) {
	was := n.blob()
	if st.inMulti {
		st.undo = append(st.undo, change{what: replaced, n: n, was: was})
	}
	n.setBlob(is)
	if st.acls.key(n.acl) != acl {
		before := n.acl
		n.acl = st.acls.retain(acl)
		st.acls.release(before)
	}
	if !was.pending() {
		st.digest -= was.hash()
	}
	switch {
	case !is.pending():
		st.digest += is.hash()
	case !was.pending(): // otherwise n is on the list already
		st.unhashed = append(st.unhashed, n)
	}
	st.weight += is.weight() - was.weight()
	st.dirty.noteChange(n, false)
	if grown != 0 {
		st.dataSize += grown
		st.account(n, 0, grown)
	}
}

// hashPending adds the pending hashes to the digest, at the end of Apply: a multi that creates ten
// thousand children of a znode with large data hashes that data once.
func (st *state) hashPending() {
	for _, n := range st.unhashed {
		// The znode may have been deleted, and its slot may hold another one.
		if n.first != nil && n.blob().pending() {
			st.digest += n.blob().hash()
			st.nHashed++
		}
	}
	st.unhashed = reuse(st.unhashed)
}

// link does the part of insert that New and Restore need too.
func (st *state) link(n *znode) {
	b := n.blob()
	st.linkSealed(n, b.hash(), b.dataSize())
}

// linkSealed is link for a znode whose hash and data size are known.
func (st *state) linkSealed(n *znode, hash uint64, dataSize int64) {
	st.index.put(n)
	if p := st.parent(n); p != nil {
		st.addChild(p, n)
	}
	st.own(n)
	st.digest += hash
	st.dataSize += dataSize
	st.weight += n.blob().weight()
}

// own lists n with its session or in collectable.
func (st *state) own(n *znode) {
	list := st.ownerList(n)
	if list == nil {
		return
	}
	if n.kind() == ephemeral {
		st.numEphemerals++
	}
	n.ownerIdx = int32(len(*list))
	*list = append(*list, n.id)
}

func (st *state) unown(n *znode) {
	list := st.ownerList(n)
	if list == nil {
		return
	}
	if n.kind() == ephemeral {
		st.numEphemerals--
	}
	*list = swapRemove(*list, n.ownerIdx, func(m znodeID, i int32) { st.at(m).ownerIdx = i })
}

func (st *state) ownerList(n *znode) *[]znodeID {
	switch n.kind() {
	case ephemeral:
		r := n.record()
		return &st.sessions[proto.SessionID(r.owner)].ephemerals
	case container, ttl:
		return &st.collectable
	}
	return nil
}

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
func (st *state) commit() {
	st.inMulti = false
	for i := range st.undo {
		if st.undo[i].what == removed {
			st.discard(st.undo[i].n)
		}
	}
	st.undo = reuse(st.undo)
}

// rollback undoes the entries of the undo log, last first, and clears it.
func (st *state) rollback() {
	st.inMulti, st.keepStats = false, true
	for i := len(st.undo) - 1; i >= 0; i-- {
		switch c := &st.undo[i]; c.what {
		case inserted:
			st.remove(c.n)
			st.discard(c.n)
		case removed:
			st.insert(c.n)
		case replaced:
			r := c.was.record()
			st.swap(c.n, c.was, r.acl, c.was.dataSize()-c.n.blob().dataSize())
		}
	}
	st.keepStats = false
	st.undo = reuse(st.undo)
}
