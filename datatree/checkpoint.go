package datatree

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/gozkd/gozkd/internal/slab"
	"github.com/gozkd/gozkd/proto"
)

// checkpointVersion is the first byte of the meta value.
const checkpointVersion = 1

// The first bytes of the keys, in key order.
const (
	metaPrefix     = 'm'
	ensemblePrefix = 'p' // participants and observers
	limitPrefix    = 'q' // a quota for all
	sessionPrefix  = 's'
	znodePrefix    = 'z'
)

// Changes is the difference between two captures as keys and values. Layout:
// docs/reference/formats.md, "Checkpoint: the tree's keys and values". Safe for concurrent use and
// independent of later changes of the tree.
type Changes struct {
	meta     meta
	singles  map[byte]string // records that exist once, by key; "": deleted
	sessions map[proto.SessionID]*sessionRecord
	notes    slab.Slab[note] // of znodes, until they are sorted

	sort   sync.Once
	znodes []note // sorted by path after sort; before it those of CaptureAll, unsorted
}

// meta is the record that exists once in a checkpoint.
type meta struct {
	lastZxid    proto.Zxid
	digest      uint64
	numZnodes   uint64
	numSessions uint64
}

func newChanges() *Changes {
	return &Changes{singles: make(map[byte]string), sessions: make(map[proto.SessionID]*sessionRecord)}
}

// Capture returns the changes since the last Capture, or since New or Restore, and starts a new
// collection. It takes constant time. The tree must have been made with TrackDirty.
//
// A key may be reported deleted although no capture has reported the key before. The tree does not
// remember earlier captures: a caller that loses a capture must continue with CaptureAll.
func (st *state) Capture() *Changes {
	c := st.dirty
	st.dirty = newChanges()
	c.meta = st.meta()
	return c
}

// CaptureAll returns the whole state as changes from nothing, the input of Restore. It works
// without TrackDirty and does not affect the next Capture. Its time is proportional to the size of
// the tree, but it copies only pointers, and may run concurrently with other reads.
func (st *state) CaptureAll() *Changes {
	c := &Changes{
		meta:     st.meta(),
		singles:  maps.Clone(st.singles),
		sessions: make(map[proto.SessionID]*sessionRecord, len(st.sessions)),
		znodes:   make([]note, 0, st.index.len()),
	}
	for id, s := range st.sessions {
		c.sessions[id] = s.rec
	}
	for n := range st.znodes.All() {
		c.znodes = append(c.znodes, note{n.first, n.size, n.id})
	}
	return c
}

// Zxid returns the zxid of the last change in the state.
func (c *Changes) Zxid() proto.Zxid { return c.meta.lastZxid }

// Len returns the number of keys, including that of meta.
func (c *Changes) Len() int {
	return 1 + len(c.singles) + len(c.sessions) + len(c.sortedZnodes())
}

// Range calls yield for each key in order until it returns an error, which Range returns. A nil
// value: the key is deleted. Key and value are shared and immutable; the callee may keep them.
func (c *Changes) Range(yield func(key, value []byte) error) error {
	if err := yield([]byte{metaPrefix}, appendMeta(nil, c.meta)); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(c.singles)) {
		var value []byte
		if c.singles[key] != "" {
			value = bytesOf(c.singles[key])
		}
		if err := yield([]byte{key}, value); err != nil {
			return err
		}
	}
	unsigned := func(a, b proto.SessionID) int { return cmp.Compare(uint64(a), uint64(b)) } // like the bytes of the keys
	for _, id := range slices.SortedFunc(maps.Keys(c.sessions), unsigned) {
		var value []byte
		if rec := c.sessions[id]; rec != nil {
			value = appendSession(nil, rec)
		}
		if err := yield(appendSessionKey(nil, id), value); err != nil {
			return err
		}
	}
	znodes := c.sortedZnodes()
	for i := range znodes {
		prefetch(znodes, i, func(n *note) byte { return n.blob().touch() })
		b, value := znodes[i].blob(), []byte(nil)
		if znodes[i].id != 0 {
			value = b.value()
		}
		if err := yield(b.key(), value); err != nil {
			return err
		}
	}
	return nil
}

func (c *Changes) sortedZnodes() []note {
	c.sort.Do(func() {
		if c.znodes == nil {
			c.znodes = make([]note, 0, c.notes.Len())
			for e := range c.notes.All() {
				c.znodes = append(c.znodes, *e)
			}
			c.notes = slab.Slab[note]{}
		}
		sortNotes(c.znodes)
		c.znodes = slices.CompactFunc(c.znodes, func(a, b note) bool {
			return (a.id == 0 || b.id == 0) && a.blob().path() == b.blob().path() // a path has one znode at most
		})
	})
	return c.znodes
}

func (st *state) meta() meta {
	return meta{st.lastZxid, st.digest, uint64(st.index.len()), uint64(len(st.sessions))}
}
