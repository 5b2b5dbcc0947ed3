package datatree

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"github.com/gozkd/gozkd/proto"
)

// ErrCheckpoint is wrapped by every error of [Restore] and [Build].
var ErrCheckpoint = errors.New("datatree: bad checkpoint")

// Restore makes a tree of all keys and values of a checkpoint, in key order. A key and its value
// need to be valid only during their step. Nothing in the tree is dirty. Errors wrap ErrCheckpoint
// and name the first bad key.
func Restore(opts Options, kv iter.Seq2[[]byte, []byte]) (*Tree, error) {
	return Build(opts, Decode(kv))
}

// SavedDigest returns the last zxid and the digest that a checkpoint says it has.
func SavedDigest(kv iter.Seq2[[]byte, []byte]) (proto.Zxid, uint64, error) {
	for _, value := range kv { // the first key is that of meta
		m, err := decodeMeta(value)
		return m.lastZxid, m.digest, err
	}
	return 0, 0, fmt.Errorf("%w: it is empty", ErrCheckpoint)
}

// Build makes a tree of the batches that [Decode] yields. The two halves of Restore share no memory
// except the batches, so a caller may run Build on one goroutine and Decode on another. The result
// and the error do not depend on which half is faster.
func Build(opts Options, batches iter.Seq[*Batch]) (*Tree, error) {
	return (&builder{t: empty(opts)}).build(batches)
}

type builder struct {
	t       *Tree
	want    meta
	hasMeta bool
	limits  []string // targets of quotas
	last    string   // the highest path so far
	parent  *znode   // of the previous znode
	above   string   // the parent's path; "": there was no such znode yet
}

func (b *builder) build(batches iter.Seq[*Batch]) (*Tree, error) {
	for batch := range batches {
		if err := b.add(batch); err != nil {
			return nil, err
		}
	}
	if err := b.finish(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCheckpoint, err)
	}
	if b.t.dirty != nil {
		b.t.dirty = newChanges()
	}
	return b.t, nil
}

// add adds a batch up to its first bad key.
func (b *builder) add(batch *Batch) error {
	for _, r := range batch.others {
		if err := b.other(r.key, r.value); err != nil {
			return keyError(r.key, err)
		}
	}
	for i := range batch.znodes {
		if err := b.znode(&batch.znodes[i]); err != nil {
			return keyError(batch.znodes[i].blob.key(), err)
		}
	}
	b.limits = append(b.limits, batch.limits...)
	if batch.err != nil {
		return batch.err
	}
	batch.others, batch.znodes, batch.limits = batch.others[:0], batch.znodes[:0], batch.limits[:0]
	batch.pool.Put(batch)
	return nil
}

func keyError(key []byte, err error) error {
	return fmt.Errorf("%w: key %q: %w", ErrCheckpoint, key, err)
}

// other adds a record that is not a znode. It encodes the record again for the digest, so a record
// in another encoding than ours changes the digest, and finish refuses the checkpoint.
func (b *builder) other(key, value []byte) (err error) {
	if len(key) == 1 && key[0] == metaPrefix {
		if b.hasMeta {
			return errors.New("comes twice")
		}
		b.hasMeta = true
		b.want, err = decodeMeta(value)
		b.t.lastZxid = b.want.lastZxid
		return err
	}
	if !b.hasMeta {
		return errors.New("the meta record is missing before it")
	}
	switch {
	case len(key) == 1 && (key[0] == ensemblePrefix || key[0] == limitPrefix):
		return b.single(key[0], value)
	case len(key) == 9 && key[0] == sessionPrefix:
		return b.session(proto.SessionID(binary.BigEndian.Uint64(key[1:])), value)
	}
	return errors.New("unknown kind of key")
}

// single adds a record that exists once.
func (b *builder) single(key byte, value []byte) error {
	if b.t.singles[key] != "" {
		return errors.New("comes twice")
	}
	if key == limitPrefix {
		l, err := decodeLimit(value)
		if err == nil && l == (Limit{}) {
			err = errors.New("it limits nothing")
		}
		b.t.replaceLimit(l)
		return err
	}
	rec, err := decodeEnsemble(value)
	switch {
	case err != nil:
		return err
	case rec.empty():
		return errors.New("it names no members")
	}
	b.t.setEnsemble(rec)
	return rec.plausible(b.t.lastZxid)
}

func (b *builder) session(id proto.SessionID, value []byte) error {
	if b.t.sessions[id] != nil {
		return errors.New("comes twice")
	}
	rec, err := decodeSession(id, value)
	if err != nil {
		return err
	}
	if rec.connEpoch < 0 || rec.connEpoch > b.t.lastZxid {
		return fmt.Errorf("attached at zxid %v, the last one is %v", rec.connEpoch, b.t.lastZxid)
	}
	rec = b.t.sealSession(*rec)
	b.t.sessions[id] = &session{rec: rec}
	b.t.digest += rec.digest
	return nil
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
	if t.index.len() >= t.mostZnodes {
		return fmt.Errorf("it is one more than %d, which are the most", t.mostZnodes)
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

// parentOf returns the parent of the znode at path, nil for the root. Most znodes have the same
// parent as the znode before them.
func (b *builder) parentOf(path string) (*znode, error) {
	if path == "/" {
		return nil, nil
	}
	above := proto.ParentPath(path)
	if above == b.above {
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

// finish compares the tree with the meta record and counts what quotas restrict.
func (b *builder) finish() error {
	t := b.t
	if !b.hasMeta {
		return errors.New("the meta record is missing")
	}
	if got := t.meta(); got != b.want {
		return fmt.Errorf("%d znodes, %d sessions and digest %#x, the meta record says %d, %d and %#x",
			got.numZnodes, got.numSessions, got.digest, b.want.numZnodes, b.want.numSessions, b.want.digest)
	}
	for _, path := range []string{"/", zookeeperPath, quotaPath, configPath} {
		if t.get(path) == nil {
			return fmt.Errorf("znode %s is missing", path)
		}
	}
	t.keepStats = true // the stats znodes are as they were
	for _, target := range b.limits {
		t.quotaOn(target)
	}
	t.keepStats = false
	return nil
}
