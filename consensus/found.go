package consensus

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/gozkd/gozkd/consensus/internal/checkpoint"
	"github.com/gozkd/gozkd/internal/vfs"
	"github.com/gozkd/gozkd/wal"
)

// Foundation says where a member begins with a state that is there, and as what.
type Foundation struct {
	ID       uint64 // of the member
	Dir      string // its new data directory
	LogDir   string // where its log goes; "" is Dir
	Cluster  uint64 // the number of the new ensemble: random, and not 0
	NewTerms uint64 // by how many terms raft leaps: more than the old ensemble can have had since
	// FS is the disk of the log. The checkpoint is on the operating system's. Default: vfs.OS{}.
	FS vfs.FS
}

// Found makes a data directory of a state, with one member, the first of a new ensemble. state is what CaptureAll of a state machine gave that has
// h's state, or one that follows from it. What it returns is what was written.
//
// A directory that holds a checkpoint or a log is refused. The order of what is made durable is the one in which Open trusts it: a log whose first
// state says that the checkpoint's index is committed, then the checkpoint, by a rename. So a crash leaves a directory that is as new, one that
// Open refuses, or the whole.
func (h Held) Found(f Foundation, state Changes) (_ Held, err error) {
	if f.FS == nil {
		f.FS = vfs.OS{}
	}
	cfg := Config{Dir: f.Dir, LogDir: f.LogDir}
	if cfg.LogDir == "" {
		cfg.LogDir = f.Dir
	}
	if f.ID == 0 || f.ID > 254 || f.Cluster == 0 || f.Cluster == h.Cluster {
		return Held{}, fmt.Errorf("consensus: member %d of ensemble %016x can't begin with a state of ensemble %016x", f.ID, f.Cluster, h.Cluster)
	}
	if f.NewTerms == 0 || f.NewTerms > math.MaxInt64 || h.Term > math.MaxInt64-f.NewTerms {
		return Held{}, fmt.Errorf("consensus: no room for %d terms after term %d", f.NewTerms, h.Term)
	}
	meta := h.meta
	meta.Member, meta.Cluster = f.ID, f.Cluster
	meta.Index, meta.Term = h.Index+1, h.Term+f.NewTerms // of an entry that nobody has: the restore itself
	meta.Conf = &raftpb.ConfState{Voters: []uint64{f.ID}}

	if err := (vfs.OS{}).MkdirAll(f.Dir); err != nil {
		return Held{}, fmt.Errorf("consensus: data directory: %w", err)
	}
	lock, err := (vfs.OS{}).Lock(filepath.Join(f.Dir, "LOCK"))
	if err != nil {
		return Held{}, fmt.Errorf("consensus: data directory %s: %w", f.Dir, err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	path := cfg.checkpointPath()
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return Held{}, errors.Join(fmt.Errorf("consensus: there is a checkpoint in %s already", f.Dir), err)
	}
	if err := foundLog(f.FS, cfg.walDir(), logState{Term: meta.Term, Commit: meta.Index}); err != nil {
		return Held{}, err
	}
	if err := checkpoint.Remove(path + ".new"); err != nil {
		return Held{}, err
	}
	if err := checkpoint.Create(path+".new", meta.append(nil), state.Range, nil); err != nil {
		return Held{}, err
	}
	if err := checkpoint.Replace(path+".new", path); err != nil {
		return Held{}, err
	}
	return heldBy(meta), nil
}

// foundLog makes a log that begins behind the committed index of its first state.
func foundLog(disk vfs.FS, dir string, first logState) error {
	l, rec, err := wal.Open(dir, wal.Config{FS: disk})
	if err != nil {
		return err
	}
	if rec.State != nil || len(rec.Entries) > 0 {
		return errors.Join(fmt.Errorf("consensus: there is a log in %s already", dir), l.Close())
	}
	return errors.Join(l.Append(wal.Batch{State: first.append(nil), Reset: first.Commit}), l.Close())
}
