package datatree

import (
	"maps"
	"slices"
	"sync"

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
	ensemble *ensembleRecord // nil: unchanged
	limit    *limitRecord    // nil: unchanged
	sessions map[proto.SessionID]*sessionRecord
	notes    pool[note] // of znodes, until they are sorted

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
	return &Changes{sessions: make(map[proto.SessionID]*sessionRecord)}
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
		sessions: make(map[proto.SessionID]*sessionRecord, len(st.sessions)),
		znodes:   make([]note, 0, st.index.len()),
	}
	if !st.ensemble.empty() {
		c.ensemble = st.ensemble
	}
	if st.limit.Limit != (Limit{}) {
		c.limit = st.limit
	}
	for id, s := range st.sessions {
		c.sessions[id] = s.rec
	}
	for n := range st.znodes.all() {
		c.znodes = append(c.znodes, note{n.first, n.size, n.id})
	}
	return c
}

// Zxid returns the zxid of the last change in the state.
func (c *Changes) Zxid() proto.Zxid { return c.meta.lastZxid }

// Len returns the number of keys, including that of meta.
func (c *Changes) Len() int {
	n := 1 + len(c.sortedZnodes()) + len(c.sessions)
	if c.ensemble != nil {
		n++
	}
	if c.limit != nil {
		n++
	}
	return n
}

// Range calls yield for each key in order until it returns an error, which Range returns. A nil
// value: the key is deleted. Key and value are shared and immutable; the callee may keep them.
func (c *Changes) Range(yield func(key, value []byte) error) error {
	var mem arena
	// put yields the key that mem.b ends with. The record is deleted if it is empty.
	put := func(empty bool, appendValue func([]byte) []byte) error {
		key, value := mem.cut(), []byte(nil)
		if !empty {
			mem.b = appendValue(mem.b)
			value = mem.cut()
		}
		return yield(key, value)
	}
	mem.b = append(mem.b, metaPrefix)
	if err := put(false, func(b []byte) []byte { return appendMeta(b, c.meta) }); err != nil {
		return err
	}
	if e := c.ensemble; e != nil {
		mem.b = append(mem.b, ensemblePrefix)
		if err := put(e.empty(), func(b []byte) []byte { return appendEnsemble(b, e) }); err != nil {
			return err
		}
	}
	if l := c.limit; l != nil {
		mem.b = append(mem.b, limitPrefix)
		if err := put(l.Limit == Limit{}, func(b []byte) []byte { return appendLimit(b, l.Limit) }); err != nil {
			return err
		}
	}
	// Sorted as unsigned, like the bytes of the keys.
	for _, id := range slices.SortedFunc(maps.Keys(c.sessions), compareUnsigned) {
		rec := c.sessions[id]
		mem.b = appendSessionKey(mem.b, id)
		if err := put(rec == nil, func(b []byte) []byte { return appendSession(b, rec) }); err != nil {
			return err
		}
	}
	znodes := c.sortedZnodes()
	for i := range znodes {
		if i%PrefetchPaths == 0 {
			prefetchNotes(znodes[i:])
		}
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

// sortedZnodes returns the znodes sorted by path.
func (c *Changes) sortedZnodes() []note {
	c.sort.Do(func() {
		if c.znodes == nil {
			c.znodes = make([]note, 0, c.notes.len())
			for e := range c.notes.all() {
				c.znodes = append(c.znodes, *e)
			}
			c.notes = pool[note]{}
		}
		sortNotes(c.znodes)
		c.znodes = slices.CompactFunc(c.znodes, func(a, b note) bool {
			return (a.id == 0 || b.id == 0) && a.blob().path() == b.blob().path() // a path has one znode at most
		})
	})
	return c.znodes
}

// arena allocates pieces of larger blocks that are never reused.
type arena struct{ b []byte }

const arenaBlock = 64 << 10

// cut returns the bytes appended to a.b since the last cut.
func (a *arena) cut() []byte {
	piece := a.b[:len(a.b):len(a.b)]
	if a.b = a.b[len(a.b):]; cap(a.b) < arenaBlock/64 {
		a.b = make([]byte, 0, arenaBlock)
	}
	return piece
}

func (st *state) meta() meta {
	return meta{st.lastZxid, st.digest, uint64(st.index.len()), uint64(len(st.sessions))}
}
