package watch

import (
	"encoding/binary"
	"slices"
	"sort"

	"github.com/gozkd/gozkd/proto"
)

// Change is a change of a znode. Children of the parent change with each Created and Deleted, which
// has no Change of its own. Path is valid until the next change is read, ACL until the next Add.
type Change struct {
	Zxid proto.Zxid
	Type proto.EventType // Created, Deleted or DataChanged
	Path []byte
	ACL  []byte // of a znode that was deleted, as Add got it
}

// History holds the latest changes, in the order of their zxids, in at most Limit bytes. It is not
// safe for concurrent use. See docs/adr/0017-replay.md.
//
// Invariants:
//
//	H1  If Covers(z), all changes with zxids above z are in it.
//	H2  The chunks have at most Limit bytes together.
type History struct {
	Limit int // 0 or less: no change is kept

	oldest proto.Zxid // changes up to it may be missing
	chunks []historyChunk
	bytes  int    // capacity of all chunks
	path   []byte // of the last change in the last chunk
}

// historyChunk holds changes one after the other, without pointers for the garbage collector. Each
// change is the difference of its zxid to the one before (varint), its type (a byte), how many
// bytes of its path are those of the change before (varint), the length of the rest (varint), the
// rest, and after a deletion the length of the ACL and the ACL.
type historyChunk struct {
	first, last proto.Zxid
	buf         []byte
}

const (
	historyChunkBytes = 64 << 10
	maxChangeHeader   = 4*binary.MaxVarintLen64 + 1
)

// Reset forgets all changes: those up to zxid are not known.
func (h *History) Reset(zxid proto.Zxid) {
	*h = History{Limit: h.Limit, oldest: zxid}
}

// Add adds a change, whose zxid is not below those of earlier changes. Only a deletion has an ACL.
func (h *History) Add(zxid proto.Zxid, typ proto.EventType, path, acl string) {
	size := maxChangeHeader + len(path) + len(acl)
	if n := len(h.chunks); n == 0 || cap(h.chunks[n-1].buf)-len(h.chunks[n-1].buf) < size {
		if !h.grow(max(size, min(historyChunkBytes, h.Limit/4)), zxid) {
			h.Reset(zxid)
			return
		}
	}
	k := &h.chunks[len(h.chunks)-1]
	shared, most := 0, min(len(path), len(h.path))
	for shared+8 <= most && path[shared:shared+8] == string(h.path[shared:shared+8]) {
		shared += 8
	}
	for shared < most && path[shared] == h.path[shared] {
		shared++
	}
	k.buf = append(binary.AppendUvarint(k.buf, uint64(zxid-k.last)), byte(typ))
	k.buf = binary.AppendUvarint(k.buf, uint64(shared))
	k.buf = append(binary.AppendUvarint(k.buf, uint64(len(path)-shared)), path[shared:]...)
	if typ == proto.EventDeleted {
		k.buf = append(binary.AppendUvarint(k.buf, uint64(len(acl))), acl...)
	}
	k.last, h.path = zxid, append(h.path[:0], path...)
}

// grow appends a chunk for changes from zxid on, and removes the oldest chunks to make room. It
// returns false if there is no room for a chunk of that size.
func (h *History) grow(size int, zxid proto.Zxid) bool {
	if size > h.Limit {
		return false
	}
	n, buf := 0, []byte(nil)
	for ; h.bytes+size > h.Limit; n++ {
		h.oldest = h.chunks[n].last
		h.bytes -= cap(h.chunks[n].buf)
		buf = h.chunks[n].buf[:0]
	}
	h.chunks = slices.Delete(h.chunks, 0, n)
	if cap(buf) != size {
		buf = make([]byte, 0, size)
	}
	h.bytes, h.path = h.bytes+cap(buf), h.path[:0]
	h.chunks = append(h.chunks, historyChunk{first: zxid, last: zxid, buf: buf})
	return true
}

// Covers reports whether all changes after zxid are known.
func (h *History) Covers(zxid proto.Zxid) bool {
	return h.Limit > 0 && h.oldest <= zxid
}

// After calls yield with each change after zxid, in order, until yield returns false.
func (h *History) After(zxid proto.Zxid, yield func(Change) bool) {
	from := sort.Search(len(h.chunks), func(i int) bool { return h.chunks[i].last > zxid })
	for _, k := range h.chunks[from:] {
		c := Change{Zxid: k.first}
		for b := k.buf; len(b) > 0; {
			by, n := binary.Uvarint(b)
			shared, m := binary.Uvarint(b[n+1:])
			c.Zxid += proto.Zxid(by)
			c.Type = proto.EventType(b[n])
			rest, after := cutBytes(b[n+1+m:])
			c.Path, b = append(c.Path[:shared], rest...), after
			if c.ACL = nil; c.Type == proto.EventDeleted {
				c.ACL, b = cutBytes(b)
			}
			if c.Zxid > zxid && !yield(c) {
				return
			}
		}
	}
}

// cutBytes returns the bytes at the beginning of b, which follow their length, and the rest.
func cutBytes(b []byte) (field, rest []byte) {
	size, n := binary.Uvarint(b)
	return b[n : n+int(size)], b[n+int(size):]
}
