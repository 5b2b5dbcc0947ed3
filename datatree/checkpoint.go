package datatree

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/gozkd/gozkd/proto"
)

// ErrCheckpoint is wrapped by every error of [Restore].
var ErrCheckpoint = errors.New("datatree: bad checkpoint")

// checkpointVersion is the first byte of the meta value.
const checkpointVersion = 1

// The first bytes of the keys, in key order.
const (
	metaPrefix     = 'm'
	ensemblePrefix = 'p' // participants and observers
	rewoundPrefix  = 'r'
	sessionPrefix  = 's'
	znodePrefix    = 'z'
)

// Changes is the difference between two captures, in the form of keys and values. Layout: docs/formats.md,
// "Checkpoint: the tree's keys and values". Safe for concurrent use, and independent of what happens to the tree.
type Changes struct {
	meta     meta
	ensemble *ensembleRecord // nil: as it was
	rewound  proto.Zxid      // 0: as it was
	sessions map[proto.SessionID]*sessionRecord
	notes    pool[note] // of znodes, until they are sorted

	sort   sync.Once
	znodes []note // in the order of their paths, after sort; before it CaptureAll's, in no order
}

// meta is what stands once in a checkpoint.
type meta struct {
	lastZxid    proto.Zxid
	digest      uint64
	numZnodes   uint64
	numSessions uint64
}

func newChanges() *Changes {
	return &Changes{sessions: make(map[proto.SessionID]*sessionRecord)}
}

// Capture returns what changed since the last Capture, or since New or Restore, and begins anew. It takes the same
// short time however much that is. The tree must have been made with TrackDirty.
//
// A key may be reported deleted that no capture reported before. The tree does not remember what it returned: who loses a capture can't go on with the
// next one, but with CaptureAll.
func (t *Tree) Capture() *Changes {
	c := t.dirty
	t.dirty = newChanges()
	c.meta = t.meta()
	return c
}

// CaptureAll returns the whole state as the difference from nothing: what Restore takes. It needs no TrackDirty, and the
// next Capture is as if it had not been. It takes time that grows with the tree, but copies pointers only. It only reads,
// so it may run concurrently with other reads.
func (t *Tree) CaptureAll() *Changes {
	c := &Changes{
		meta:     t.meta(),
		rewound:  t.rewound,
		sessions: make(map[proto.SessionID]*sessionRecord, len(t.sessions)),
		znodes:   make([]note, 0, t.index.len()),
	}
	if !t.ensemble.empty() {
		c.ensemble = t.ensemble
	}
	for id, s := range t.sessions {
		c.sessions[id] = s.rec
	}
	for n := range t.znodes.all() {
		c.znodes = append(c.znodes, note{n.first, n.size, n.id})
	}
	return c
}

// Zxid returns the zxid of the last change in the state.
func (c *Changes) Zxid() proto.Zxid { return c.meta.lastZxid }

// Len returns the number of keys, the one for meta included.
func (c *Changes) Len() int {
	n := 1 + len(c.sortedZnodes()) + len(c.sessions)
	if c.ensemble != nil {
		n++
	}
	if c.rewound != 0 {
		n++
	}
	return n
}

// Range calls yield for each key in order until it returns an error, which Range returns. A nil value means that the key
// is to be deleted. Key and value are shared and immutable: the callee may keep them and must not change them.
func (c *Changes) Range(yield func(key, value []byte) error) error {
	var mem arena
	mem.b = append(mem.b, metaPrefix)
	key := mem.cut()
	mem.b = appendMeta(mem.b, c.meta)
	if err := yield(key, mem.cut()); err != nil {
		return err
	}
	if c.ensemble != nil {
		mem.b = append(mem.b, ensemblePrefix)
		key, value := mem.cut(), []byte(nil)
		if !c.ensemble.empty() {
			mem.b = appendEnsemble(mem.b, c.ensemble)
			value = mem.cut()
		}
		if err := yield(key, value); err != nil {
			return err
		}
	}
	if c.rewound != 0 {
		mem.b = append(mem.b, rewoundPrefix)
		key := mem.cut()
		mem.b = binary.AppendUvarint(mem.b, uint64(c.rewound))
		if err := yield(key, mem.cut()); err != nil {
			return err
		}
	}
	// Sorted as unsigned, like the bytes of the keys.
	for _, id := range slices.SortedFunc(maps.Keys(c.sessions), compareUnsigned) {
		mem.b = appendSessionKey(mem.b, id)
		key, value := mem.cut(), []byte(nil)
		if rec := c.sessions[id]; rec != nil {
			mem.b = appendSession(mem.b, rec)
			value = mem.cut()
		}
		if err := yield(key, value); err != nil {
			return err
		}
	}
	znodes := c.sortedZnodes()
	for i := range znodes {
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

// sortedZnodes returns the znodes in the order of their paths.
func (c *Changes) sortedZnodes() []note {
	c.sort.Do(func() {
		if c.znodes == nil {
			c.znodes = make([]note, 0, c.notes.len())
			for e := range c.notes.all() {
				c.znodes = append(c.znodes, *e)
			}
			c.notes = pool[note]{}
		}
		slices.SortFunc(c.znodes, func(a, b note) int {
			if order := strings.Compare(a.blob().path(), b.blob().path()); order != 0 {
				return order
			}
			return cmp.Compare(b.id, a.id) // the one that is there before the one that is gone
		})
		c.znodes = slices.CompactFunc(c.znodes, func(a, b note) bool { return a.blob().path() == b.blob().path() })
	})
	return c.znodes
}

// arena hands out pieces of larger blocks that are never used again.
type arena struct{ b []byte }

const arenaBlock = 64 << 10

// cut returns what was appended to a.b since the last cut.
func (a *arena) cut() []byte {
	piece := a.b[:len(a.b):len(a.b)]
	if a.b = a.b[len(a.b):]; cap(a.b) < arenaBlock/64 {
		a.b = make([]byte, 0, arenaBlock)
	}
	return piece
}

// noteSession marks a session dirty.
func (t *Tree) noteSession(id proto.SessionID, rec *sessionRecord) {
	if t.dirty != nil {
		t.dirty.sessions[id] = rec
	}
}

func (t *Tree) meta() meta {
	return meta{t.lastZxid, t.digest, uint64(t.index.len()), uint64(len(t.sessions))}
}

// Restore makes a tree of all keys and values of a checkpoint, in key order. A key and its value need to be valid only
// during their step. Nothing is dirty in it. Errors wrap ErrCheckpoint and name the key.
func Restore(opts Options, kv iter.Seq2[[]byte, []byte]) (*Tree, error) {
	r := restorer{t: empty(opts)}
	for key, value := range kv {
		if err := r.step(key, value); err != nil {
			return nil, fmt.Errorf("%w: key %q: %w", ErrCheckpoint, key, err)
		}
	}
	if err := r.finish(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCheckpoint, err)
	}
	return r.t, nil
}

// restorer is a Restore on its way.
type restorer struct {
	t       *Tree
	want    meta
	hasMeta bool
	limits  []string // targets of quotas
}

// step reads one key. Records are made anew, so that a form of one which is not ours has another digest than its own, and is refused in the end.
func (r *restorer) step(key, value []byte) error {
	if len(key) == 1 && key[0] == metaPrefix {
		if r.hasMeta {
			return errors.New("comes twice")
		}
		r.hasMeta = true
		var err error
		r.want, err = decodeMeta(value)
		r.t.lastZxid = r.want.lastZxid
		return err
	}
	if !r.hasMeta {
		return errors.New("the meta record is missing before it")
	}
	if len(key) > 1 && key[0] == znodePrefix {
		return r.znode(textOf(key[1:]), value)
	}
	switch {
	case len(key) == 1 && key[0] == ensemblePrefix:
		return r.ensemble(value)
	case len(key) == 1 && key[0] == rewoundPrefix:
		return r.rewound(value)
	case len(key) == 9 && key[0] == sessionPrefix:
		return r.session(proto.SessionID(binary.BigEndian.Uint64(key[1:])), value)
	}
	return errors.New("unknown kind of key")
}

func (r *restorer) ensemble(value []byte) error {
	if !r.t.ensemble.empty() {
		return errors.New("comes twice")
	}
	rec, err := decodeEnsemble(value)
	if err != nil {
		return err
	}
	if rec.empty() {
		return errors.New("it names no members")
	}
	last := r.t.lastZxid
	if pending := rec.pending.Serial; rec.version < 0 || pending < 0 || max(rec.version, pending) > last || pending != 0 && pending <= rec.version {
		return fmt.Errorf("zxids %v %v, the last one is %v", rec.version, pending, last)
	}
	for _, set := range rec.both() {
		if (set.Serial == 0) != (len(set.Members.Voters()) == 0) {
			return fmt.Errorf("the members of zxid %v are %v", set.Serial, set.Members)
		}
	}
	r.t.ensemble = r.t.sealEnsemble(*rec)
	r.t.digest += r.t.ensemble.digest
	return nil
}

func (r *restorer) rewound(value []byte) error {
	if r.t.rewound != 0 {
		return errors.New("comes twice")
	}
	d := reader{b: value}
	r.t.rewound = proto.Zxid(d.uvarint())
	if err := d.end(); err != nil {
		return err
	}
	if r.t.rewound <= 0 || r.t.rewound > r.t.lastZxid {
		return fmt.Errorf("rewound at zxid %v, the last one is %v", r.t.rewound, r.t.lastZxid)
	}
	r.t.digest += r.t.rewoundDigest(r.t.rewound)
	return nil
}

func (r *restorer) session(id proto.SessionID, value []byte) error {
	if r.t.sessions[id] != nil {
		return errors.New("comes twice")
	}
	rec, err := decodeSession(id, value)
	if err != nil {
		return err
	}
	if rec.connEpoch < 0 || rec.connEpoch > r.t.lastZxid {
		return fmt.Errorf("attached at zxid %v, the last one is %v", rec.connEpoch, r.t.lastZxid)
	}
	rec = r.t.sealSession(*rec)
	r.t.sessions[id] = &session{rec: rec}
	r.t.digest += rec.digest
	return nil
}

func (r *restorer) znode(path string, value []byte) error {
	t := r.t
	if err := proto.ValidatePath(path); err != nil {
		return err
	}
	if t.get(path) != nil {
		return errors.New("comes twice")
	}
	rec, err := t.decodeRecord(value)
	if err != nil {
		return err
	}
	var parent *znode
	if path != "/" {
		switch parent = t.get(proto.ParentPath(path)); {
		case parent == nil:
			return errors.New("its parent is missing before it")
		case parent.kind() == ephemeral:
			return errors.New("its parent is ephemeral")
		}
	}
	if err := rec.plausible(t.lastZxid); err != nil {
		return err
	}
	if t.index.len() >= t.limit {
		return fmt.Errorf("it is one more than %d, which are the most", t.limit)
	}
	if rec.kind == ephemeral && t.sessions[proto.SessionID(rec.owner)] == nil {
		return fmt.Errorf("its owner, session %v, is missing", proto.SessionID(rec.owner))
	}
	n := t.newZnode(parent, path, &rec)
	if parent == nil {
		t.root = n
	}
	t.link(n)
	if target, ok := quotaTarget(n.path(), limitsName); ok {
		r.limits = append(r.limits, target)
	}
	return nil
}

// finish compares what was read with what the meta record promised, and counts the quotas.
func (r *restorer) finish() error {
	t := r.t
	if !r.hasMeta {
		return errors.New("the meta record is missing")
	}
	if got := t.meta(); got != r.want {
		return fmt.Errorf("%d znodes, %d sessions and digest %#x, the meta record says %d, %d and %#x",
			got.numZnodes, got.numSessions, got.digest, r.want.numZnodes, r.want.numSessions, r.want.digest)
	}
	for _, path := range []string{"/", zookeeperPath, quotaPath, configPath} {
		if t.get(path) == nil {
			return fmt.Errorf("znode %s is missing", path)
		}
	}
	t.keepStats = true // the stats znodes are as they were
	for _, target := range r.limits {
		t.quotaOn(target)
	}
	t.keepStats = false
	return nil
}
