package datatree

import "github.com/gozkd/gozkd/proto"

// Everything that changes znodes goes through insert, remove and replace. They keep the indexes, the digest, the counts,
// the dirty records and the undo log together.

// insert adds n, whose path, record and parent are set.
func (t *Tree) insert(n *znode) {
	t.link(n)
	t.note(n.path, n.rec)
	if t.inMulti {
		t.undo = append(t.undo, change{what: inserted, n: n})
	}
	t.quotaAfterInsert(n)
}

// remove takes out n, which has no children.
func (t *Tree) remove(n *znode) {
	t.quotaBeforeRemove(n)
	if t.inMulti {
		t.undo = append(t.undo, change{what: removed, n: n})
	}
	t.znodes.drop(n)
	n.parent.dropChild(n)
	t.unown(n)
	t.release(n.rec.acl)
	t.digest -= n.rec.digest
	t.dataSize -= int64(len(n.path) + len(n.rec.data))
	t.note(n.path, nil)
}

// replace gives n another record of the same owner and kind.
func (t *Tree) replace(n *znode, rec *record) {
	old := n.rec
	if t.inMulti {
		t.undo = append(t.undo, change{what: replaced, n: n, old: old})
	}
	n.rec = rec
	if old.acl != rec.acl {
		t.retain(rec.acl)
		t.release(old.acl)
	}
	t.digest += rec.digest - old.digest
	t.note(n.path, rec)
	if grown := int64(len(rec.data) - len(old.data)); grown != 0 {
		t.dataSize += grown
		t.account(n, 0, grown)
	}
}

// link does the part of insert that restoring needs as well.
func (t *Tree) link(n *znode) {
	t.znodes.put(n)
	if n.parent != nil {
		n.parent.addChild(n)
	}
	t.own(n)
	t.retain(n.rec.acl)
	t.digest += n.rec.digest
	t.dataSize += int64(len(n.path) + len(n.rec.data))
}

// own lists n with its session, or with what is collected.
func (t *Tree) own(n *znode) {
	list := t.ownerList(n)
	if list == nil {
		return
	}
	if n.rec.kind == ephemeral {
		t.numEphemerals++
	}
	n.ownerIdx = int32(len(*list))
	*list = append(*list, n)
}

func (t *Tree) unown(n *znode) {
	list := t.ownerList(n)
	if list == nil {
		return
	}
	if n.rec.kind == ephemeral {
		t.numEphemerals--
	}
	*list = swapRemove(*list, n.ownerIdx, func(m *znode, i int32) { m.ownerIdx = i })
}

func (t *Tree) ownerList(n *znode) *[]*znode {
	switch n.rec.kind {
	case ephemeral:
		return &t.sessions[proto.SessionID(n.rec.owner)].ephemerals
	case container, ttl:
		return &t.collectable
	}
	return nil
}

// change is one entry of the undo log.
type change struct {
	what whatChanged
	n    *znode
	old  *record // replaced only
}

type whatChanged uint8

const (
	inserted whatChanged = iota
	removed
	replaced
)

// rollback undoes what stands in the undo log, last first.
func (t *Tree) rollback() {
	t.inMulti, t.keepStats = false, true
	for i := len(t.undo) - 1; i >= 0; i-- {
		switch c := t.undo[i]; c.what {
		case inserted:
			t.remove(c.n)
		case removed:
			t.insert(c.n)
		case replaced:
			t.replace(c.n, c.old)
		}
	}
	t.keepStats = false
}
