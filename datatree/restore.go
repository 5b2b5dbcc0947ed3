package datatree

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"

	"github.com/gozkd/gozkd/proto"
)

// ErrCheckpoint is wrapped by every error of [Restore].
var ErrCheckpoint = errors.New("datatree: bad checkpoint")

// Restore makes a tree of all keys and values of a checkpoint, in key order. A key and its value need to be valid only
// during their step. Nothing is dirty in it. Errors wrap ErrCheckpoint and name the key.
//
// kv is gone through on the caller's goroutine, which takes the znodes apart. Many are put together to a tree on another one meanwhile, which has ended
// when Restore returns. Tree and error do not depend on which of the two is faster, but how many keys behind a bad one kv is asked for does.
func Restore(opts Options, kv iter.Seq2[[]byte, []byte]) (*Tree, error) {
	return newRestorer(empty(opts)).restore(kv)
}

// restorer is a Restore on its way: it takes znodes apart and seals them, and its builder puts them in the tree. While that is busy, of the tree the
// restorer touches but buf and what it alone has set, before any znode: lastZxid.
type restorer struct {
	t       *Tree
	want    meta
	hasMeta bool
	limits  []string          // targets of quotas
	acls    map[string]string // encodings that there were, each once
	aclBuf  []byte
	err     error // of the first bad key

	builder builder
	batch   []sealed      // for the builder
	full    chan []sealed // to the builder; nil: it has nothing to do
	spare   chan []sealed // back from it
}

func newRestorer(t *Tree) *restorer {
	return &restorer{t: t, acls: make(map[string]string), builder: builder{t: t}}
}

func (r *restorer) restore(kv iter.Seq2[[]byte, []byte]) (*Tree, error) {
	defer r.settle() // if kv panics
	for key, value := range kv {
		if err := r.step(key, value); err != nil {
			r.err = keyError(key, err)
		}
		if r.err != nil {
			break
		}
	}
	if r.settle(); r.err != nil {
		return nil, r.err
	}
	if err := r.finish(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCheckpoint, err)
	}
	return r.t, nil
}

// step reads one key. Records are made anew, so that a form of one which is not ours has another digest than its own, and is refused in the end.
func (r *restorer) step(key, value []byte) error {
	if r.hasMeta && len(key) > 1 && key[0] == znodePrefix {
		return r.znode(textOf(key[1:]), value)
	}
	if r.settle(); r.err != nil {
		return nil // there is one before
	}
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
	switch {
	case len(key) == 1 && key[0] == ensemblePrefix:
		return r.ensemble(value)
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
	if err := proto.ValidatePath(path); err != nil {
		return err
	}
	rec, err := decodeRecord(value, r.aclKey)
	if err != nil {
		return err
	}
	if err := rec.plausible(r.t.lastZxid); err != nil {
		return err
	}
	b := r.t.seal(path, &rec)
	r.batch = append(r.batch, sealed{
		blob: b, hash: b.hash(), dataSize: int64(len(path) + len(rec.data)), acl: rec.acl, kind: rec.kind, owner: rec.owner,
	})
	if target, ok := quotaTarget(b.path(), limitsName); ok {
		r.limits = append(r.limits, target)
	}
	if len(r.batch) == batchZnodes {
		r.handOver()
	}
	return nil
}

// aclKey is Tree.aclKey without the tree, which is the builder's.
func (r *restorer) aclKey(list []proto.ACL) string {
	if isOpen(list) {
		return ""
	}
	r.aclBuf = appendACL(r.aclBuf[:0], list)
	key, ok := r.acls[string(r.aclBuf)]
	if !ok {
		key = string(r.aclBuf)
		r.acls[key] = key
	}
	return key
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

const (
	// batchZnodes is how many znodes the builder is given at once; a tree with fewer is built by the restorer itself.
	batchZnodes = 256
	// batchesAhead is how many of them may wait.
	batchesAhead = 4
)

// handOver gives the builder a batch.
func (r *restorer) handOver() {
	if r.full == nil {
		r.full, r.spare = make(chan []sealed, batchesAhead), make(chan []sealed, batchesAhead+2)
		r.builder.done = make(chan struct{})
		// Stopped and awaited by settle.
		go r.builder.run(r.full, r.spare)
	}
	r.full <- r.batch
	select {
	case r.batch = <-r.spare:
	default:
		r.batch = make([]sealed, 0, batchZnodes)
	}
	if r.builder.failed.Load() {
		r.settle()
	}
}

// settle waits until all znodes are in the tree that were read. An error that comes of it is of a key before the one that is read now.
func (r *restorer) settle() {
	if r.full != nil {
		close(r.full)
		<-r.builder.done
		r.full, r.spare = nil, nil
	}
	r.builder.add(r.batch)
	r.batch = r.batch[:0]
	if r.builder.err != nil {
		r.err = r.builder.err
	}
}

// sealed is a znode that is to be put in the tree.
type sealed struct {
	blob     blob
	hash     uint64 // of the blob
	dataSize int64  // blob.dataSize()
	acl      string
	owner    uint64
	kind     kind
}

// builder puts znodes in a tree.
type builder struct {
	t      *Tree
	err    error         // of the first bad one; nothing is added behind it
	failed atomic.Bool   // there is one: no more are wanted
	done   chan struct{} // closed when run has ended
	last   string        // the highest path so far
	parent *znode        // of the znode before, or nil
	above  string        // its path
}

// run adds what comes until full is closed, and gives the memory back for reuse.
func (b *builder) run(full <-chan []sealed, spare chan<- []sealed) {
	defer close(b.done)
	for batch := range full {
		b.add(batch)
		select {
		case spare <- batch[:0]:
		default:
		}
	}
}

// add adds znodes up to the first bad one, unless there was one.
func (b *builder) add(batch []sealed) {
	for i := range batch {
		if b.err != nil {
			return
		}
		if err := b.znode(&batch[i]); err != nil {
			b.err = keyError(batch[i].blob.key(), err)
			b.failed.Store(true)
		}
	}
}

func keyError(key []byte, err error) error {
	return fmt.Errorf("%w: key %q: %w", ErrCheckpoint, key, err)
}

func (b *builder) znode(s *sealed) error {
	t, path := b.t, s.blob.path()
	if path > b.last {
		b.last = path
	} else if t.get(path) != nil {
		return errors.New("comes twice")
	}
	parent, err := b.parentOf(path)
	if err != nil {
		return err
	}
	if t.index.len() >= t.limit {
		return fmt.Errorf("it is one more than %d, which are the most", t.limit)
	}
	if s.kind == ephemeral && t.sessions[proto.SessionID(s.owner)] == nil {
		return fmt.Errorf("its owner, session %v, is missing", proto.SessionID(s.owner))
	}
	n := t.place(parent, s.blob, s.acl)
	if parent == nil {
		t.root = n
	}
	t.linkSealed(n, s.hash, s.dataSize)
	return nil
}

// parentOf returns the parent of the znode at path, which is mostly that of the one before; nil for the root.
func (b *builder) parentOf(path string) (*znode, error) {
	if path == "/" {
		return nil, nil
	}
	above := proto.ParentPath(path)
	if b.parent != nil && above == b.above {
		return b.parent, nil
	}
	switch parent := b.t.get(above); {
	case parent == nil:
		return nil, errors.New("its parent is missing before it")
	case parent.kind() == ephemeral:
		return nil, errors.New("its parent is ephemeral")
	default:
		b.parent, b.above = parent, above
		return parent, nil
	}
}
