package datatree

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/gozkd/gozkd/proto"
)

// snapshotVersion is the first byte of a snapshot.
const snapshotVersion = 1

// snapshotHashBytes is the length of the hash at the end.
const snapshotHashBytes = 8

// Snapshot returns the znodes as they are, as the body of a rewind: all but /zookeeper/config and what is below it. Layout:
// docs/reference/formats.md, "Snapshot". The bytes are the caller's. It takes time and memory that grow with the tree. It only
// reads, so it may run concurrently with other reads.
func (t *Tree) Snapshot() []byte {
	znodes := make([]blob, 0, t.index.len())
	for n := range t.znodes.all() {
		if !ofConfig(n.path()) {
			znodes = append(znodes, n.blob())
		}
	}
	slices.SortFunc(znodes, func(a, b blob) int { return strings.Compare(a.path(), b.path()) })

	const perZnode = 40 // about what a record and the lengths take, beyond path and data
	b := make([]byte, 0, int(t.dataSize)+perZnode*len(znodes))
	b = append(b, snapshotVersion)
	b = binary.AppendUvarint(b, uint64(t.lastZxid))
	for _, n := range znodes {
		b = appendText(b, n.path())
		b = binary.AppendUvarint(b, uint64(n.valueBytes()))
		b = n.appendValue(b)
	}
	return binary.BigEndian.AppendUint64(b, xxhash.Sum64(b))
}

// ofConfig reports whether path is that of the ensemble's members or below it, which no snapshot has: the members are not
// rewound, so their text is not either.
func ofConfig(path string) bool {
	return path == configPath || strings.HasPrefix(path, configPath+"/")
}

// wanted is a znode as a rewind is to leave it.
type wanted struct {
	path string
	rec  record // shares memory with the snapshot, or with now
	same bool   // as now has it
	now  *znode // the same znode in the tree; nil: there is none, or another one under this path
}

// snapshotReader takes a snapshot apart and compares it with the tree, which it only reads.
type snapshotReader struct {
	t    *Tree
	zxid proto.Zxid // of the snapshot
	all  []*wanted  // parents first; no ephemerals of sessions that are gone
	at   map[string]*wanted
	last string
}

// readSnapshot reads a snapshot that was taken before the zxid. All of it is checked: what comes back can be put in the place
// of the znodes that are there. It shares memory with b.
func (t *Tree) readSnapshot(b []byte, before proto.Zxid) (*snapshotReader, error) {
	switch {
	case len(b) > 0 && b[0] != snapshotVersion:
		return nil, fmt.Errorf("snapshot of version %d, known is %d", b[0], snapshotVersion)
	case len(b) <= snapshotHashBytes:
		return nil, fmt.Errorf("snapshot of %d bytes: %w", len(b), errTruncated)
	}
	b, hash := b[:len(b)-snapshotHashBytes], binary.BigEndian.Uint64(b[len(b)-snapshotHashBytes:])
	if got := xxhash.Sum64(b); got != hash {
		return nil, fmt.Errorf("the snapshot's hash is %#x, computed is %#x", hash, got)
	}
	d := reader{b: b[1:]}
	s := &snapshotReader{t: t, at: make(map[string]*wanted, t.index.len()), zxid: proto.Zxid(d.uvarint())}
	if s.zxid < 0 || s.zxid >= before {
		return nil, fmt.Errorf("the snapshot is of zxid %v, which is not over here", s.zxid)
	}
	for len(d.b) > 0 {
		path, value := textOf(d.bytes()), d.bytes()
		if d.err != nil {
			break
		}
		if err := s.znode(path, value); err != nil {
			return nil, fmt.Errorf("the snapshot's znode %q: %w", path, err)
		}
	}
	if d.err != nil {
		return nil, fmt.Errorf("snapshot behind znode %q: %w", s.last, d.err)
	}
	if len(s.all) > t.limit-1 { // one is left for /zookeeper/config
		return nil, fmt.Errorf("the snapshot has %d znodes, the most are %d", len(s.all), t.limit)
	}
	for _, path := range []string{"/", zookeeperPath, quotaPath} {
		switch w := s.at[path]; {
		case w == nil:
			return nil, fmt.Errorf("the snapshot lacks znode %s", path)
		case w.now == nil: // it can't be removed, so it can't be made either
			return nil, fmt.Errorf("the snapshot is of another tree: its znode %s is not the one here", path)
		}
	}
	return s, nil
}

func (s *snapshotReader) znode(path string, value []byte) error {
	if err := proto.ValidatePath(path); err != nil {
		return err
	}
	var parent *wanted
	if path != "/" {
		parent = s.at[proto.ParentPath(path)]
	}
	switch {
	case path <= s.last:
		return fmt.Errorf("it comes after %q", s.last)
	case ofConfig(path):
		return errors.New("it belongs to the ensemble's members, which are no part of a snapshot")
	case path != "/" && (parent == nil || parent.rec.kind == ephemeral):
		return errors.New("its parent is missing before it, or ephemeral")
	}
	s.last = path
	rec, now, same, err := s.record(path, value)
	if err != nil {
		return err
	}
	if rec.kind == ephemeral && s.t.sessions[proto.SessionID(rec.owner)] == nil {
		return nil
	}
	if now != nil {
		if is := now.record(); !sameZnode(&is, &rec) || parent != nil && parent.now == nil {
			now, same = nil, false
		}
	}
	w := &wanted{path: path, rec: rec, same: same, now: now}
	s.all = append(s.all, w)
	s.at[path] = w
	return nil
}

// record decodes one, and returns what the tree has under its path, and whether that is the same: mostly nearly all are.
func (s *snapshotReader) record(path string, value []byte) (rec record, now *znode, same bool, err error) {
	now = s.t.get(path)
	if same = now != nil && now.blob().hasValue(value); same {
		rec = now.record()
	} else if rec, err = s.t.decodeRecord(value); err != nil {
		return rec, nil, false, err
	}
	if err := rec.plausible(s.zxid); err != nil {
		return rec, nil, false, err
	}
	return rec, now, same, nil
}

// sameZnode reports whether two records under one path are of one znode. Kind and owner of a znode never change, so that they
// differ while czxid is the same says that the snapshot is of another tree.
func sameZnode(a, b *record) bool {
	return a.czxid == b.czxid && a.kind == b.kind && a.owner == b.owner
}
