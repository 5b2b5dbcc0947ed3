package datatree

// note is a znode, present or deleted, that the next checkpoint must write.
type note struct {
	first *byte // as in znode
	size  uint32
	id    znodeID // 0: the znode was deleted, and the note has its last blob
}

func (e *note) blob() blob { return blobAt(e.first, e.size) }

// noteFresh is a flag in znode.note: no capture has seen the znode.
const noteFresh = 1 << 31

// noteOf returns the note of n since the last Capture, or nil. Capture does not reset znode.note,
// so the number may be from an earlier capture: then the note with that number belongs to another
// znode or does not exist.
func (c *Changes) noteOf(n *znode) *note {
	if e := c.notes.peek(n.note &^ noteFresh); e != nil && e.id == n.id {
		return e
	}
	return nil
}

// noteChange marks n dirty.
func (t *Tree) noteChange(n *znode, fresh bool) {
	if t.dirty == nil {
		return
	}
	e := t.dirty.noteOf(n)
	if e == nil {
		n.note, e = t.dirty.notes.alloc()
		e.id = n.id
		if fresh {
			n.note |= noteFresh
		}
	}
	e.first, e.size = n.first, n.size
}

// noteRemoval marks n deleted. A znode created and deleted between two captures leaves no note,
// except that of an earlier znode with its path.
func (t *Tree) noteRemoval(n *znode) {
	if t.dirty == nil {
		return
	}
	switch e := t.dirty.noteOf(n); {
	case e == nil:
		_, e = t.dirty.notes.alloc()
		e.first, e.size = n.first, n.size
	case n.note&noteFresh != 0:
		t.dirty.notes.free(n.note &^ noteFresh)
	default:
		e.id = 0
	}
	n.note = 0
}
