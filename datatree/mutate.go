package datatree

import "github.com/gozkd/gozkd/proto"

// Everything that changes znodes goes through insert, remove and replace. They keep the indexes, the digest, the counts,
// the notes for a checkpoint and the undo log together.

// newZnode makes a znode of a record, which is not in the tree yet: see insert.
func (t *Tree) newZnode(parent *znode, path string, r *record) *znode {
	return t.place(parent, t.seal(path, r), r.acl)
}

// place makes a znode of a blob with that ACL.
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

// discard lets go of a znode that is not in the tree any more: from now on its id is another's. What a multi removed may come
// back, so that is kept until its end.
func (t *Tree) discard(n *znode) {
	if t.inMulti {
		return
	}
	t.acls.release(n.acl)
	t.znodes.free(n.id)
}

// insert adds n, which newZnode made or remove removed.
func (t *Tree) insert(n *znode) {
	t.link(n)
	t.noteChange(n, true)
	if t.inMulti {
		t.undo = append(t.undo, change{what: inserted, n: n})
	}
	t.quotaAfterInsert(n)
}

// remove takes out n, which has no children. It can be read until it is discarded, which the caller has to see to.
func (t *Tree) remove(n *znode) {
	t.quotaBeforeRemove(n)
	if t.inMulti {
		t.undo = append(t.undo, change{what: removed, n: n})
	}
	t.index.drop(n)
	t.dropChild(t.parent(n), n)
	b := n.blob()
	t.unown(n)
	t.digest -= b.hash()
	t.dataSize -= b.dataSize()
	t.noteRemoval(n)
}

// replace gives n another record of the same owner and kind.
func (t *Tree) replace(n *znode, r *record) {
	is := t.seal(n.path(), r)
	t.swap(n, is, r.acl, is.dataSize()-n.blob().dataSize())
}

// update is replace for who knows that the data are longer by so many bytes: to find it out, both blobs would have to be read.
func (t *Tree) update(n *znode, r *record, grown int64) { t.swap(n, t.seal(n.path(), r), r.acl, grown) }

// swap gives n another blob, of the same path, owner and kind, with that ACL, and data that are longer by so many bytes.
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
	t.digest += is.hash() - was.hash()
	t.noteChange(n, false)
	if grown != 0 {
		t.dataSize += grown
		t.account(n, 0, grown)
	}
}

// link does the part of insert that New needs as well.
func (t *Tree) link(n *znode) {
	b := n.blob()
	t.linkSealed(n, b.hash(), b.dataSize())
}

// linkSealed does so for a znode of which the blob's hash and data size are known.
func (t *Tree) linkSealed(n *znode, hash uint64, dataSize int64) {
	t.index.put(n)
	if p := t.parent(n); p != nil {
		t.addChild(p, n)
	}
	t.own(n)
	t.digest += hash
	t.dataSize += dataSize
}

// own lists n with its session, or with what is collected.
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

// change is one entry of the undo log.
type change struct {
	what whatChanged
	n    *znode
	was  blob // replaced only
}

type whatChanged uint8

const (
	inserted whatChanged = iota
	removed
	replaced
)

// commit forgets the undo log, and lets go of what was removed.
func (t *Tree) commit() {
	t.inMulti = false
	for i := range t.undo {
		if t.undo[i].what == removed {
			t.discard(t.undo[i].n)
		}
	}
	t.undo = reuse(t.undo)
}

// rollback undoes what stands in the undo log, last first, and forgets it.
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
