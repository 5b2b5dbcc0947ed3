package datatree

// note is a znode of which a checkpoint is to learn, as it is now or as it last was.
type note struct {
	first *byte // as in znode
	size  uint32
	id    znodeID // 0: the znode was deleted, and the blob is its last
}

func (e *note) blob() blob { return blobAt(e.first, e.size) }

// noteFresh is the bit of znode.note that says that no capture has the znode.
const noteFresh = 1 << 31

// noteOf returns the note that there is of n since the last Capture, or nil. A capture leaves all znode.note as they are, so
// a number may be of a former one: then what has it now is another znode's, or nobody's.
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

// noteRemoval marks n deleted. What came and went between two captures leaves no trace, but for the one that a znode which had the path before left.
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
