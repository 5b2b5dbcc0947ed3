package datatree

import (
	"strings"
	"unsafe"

	"github.com/gozkd/gozkd/proto"
)

// note is a znode, present or deleted, that the next checkpoint must write.
type note struct {
	first *byte // as in znode
	size  uint32
	id    znodeID // 0: the znode was deleted, and the blob has at least its key
}

func (e *note) blob() blob { return blobAt(e.first, e.size) }

// noteFresh is a flag in znode.note: no capture has seen the znode.
const noteFresh = 1 << 31

// noteOf returns the note of n since the last Capture, or nil. Capture does not reset znode.note,
// so the number may be from an earlier capture: then the note with that number belongs to another
// znode or does not exist.
func (c *Changes) noteOf(n *znode) *note {
	if e := c.notes.Peek(n.note &^ noteFresh); e != nil && e.id == n.id {
		return e
	}
	return nil
}

// noteChange marks n dirty. noteChange, noteRemoval and noteSession do nothing if c is nil.
func (c *Changes) noteChange(n *znode, fresh bool) {
	if c == nil {
		return
	}
	e := c.noteOf(n)
	if e == nil {
		n.note, e = c.notes.Alloc()
		e.id = n.id
		if fresh {
			n.note |= noteFresh
		}
	}
	e.first, e.size = n.first, n.size
}

// noteRemoval marks n deleted. A znode created and deleted between two captures leaves no note,
// except that of an earlier znode with its path.
func (c *Changes) noteRemoval(n *znode) {
	if c == nil {
		return
	}
	switch e := c.noteOf(n); {
	case e == nil:
		_, e = c.notes.Alloc()
		e.setDeleted(n.blob())
	case n.note&noteFresh != 0:
		c.notes.Free(n.note &^ noteFresh)
	default:
		e.setDeleted(n.blob())
	}
}

// setDeleted makes e the note of a deleted znode. The note stays until the next checkpoint, and
// must not keep the memory of the data until then.
func (e *note) setDeleted(b blob) {
	const spare = 64 // bytes that are not worth a copy of the key
	text := b.text
	if _, end := b.keyAt(); len(text) > end+spare { // text excludes large data
		text = strings.Clone(text[:end])
	}
	e.first, e.size, e.id = unsafe.StringData(text), uint32(len(text)), 0
}

func (c *Changes) noteSession(id proto.SessionID, rec *sessionRecord) {
	if c != nil {
		c.sessions[id] = rec
	}
}
