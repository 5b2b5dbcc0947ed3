package consensus

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/gozkd/gozkd/consensus/internal/core"
	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/internal/vfs"
	"github.com/gozkd/gozkd/wal"
)

// Foundation describes the first member of a new ensemble that begins with an existing state.
type Foundation struct {
	ID       uint64 // of the member
	Dir      string // its new data directory
	LogDir   string // directory of its log; "" means Dir
	Cluster  uint64 // identifies the new ensemble: random, and not 0
	NewTerms uint64 // raft's term grows by this: more than the old ensemble can have had since
	// FS is the disk of the log. The checkpoint is on the system's disk. Default: vfs.OS{}.
	FS vfs.FS
}

// FoundEnsemble makes a data directory with one member, the first of a new ensemble. state is the
// result of CaptureAll of a state machine whose state is that of s, or follows from it. The result
// describes the written state.
//
// A directory that holds a checkpoint or a log is refused. Things become durable in the order in
// which Open trusts them: a log whose first state says that the checkpoint's index is committed,
// then the checkpoint, by a rename. So after a crash the directory looks new, is refused by Open,
// or is complete.
func (s SavedState) FoundEnsemble(f Foundation, state Changes) (SavedState, error) {
	if f.ID == 0 || f.ID > core.MaxMemberID || f.Cluster == 0 || f.Cluster == s.Cluster {
		return SavedState{}, fmt.Errorf("consensus: member %d of ensemble %016x can't begin with a state of ensemble %016x",
			memberid.Number(f.ID), f.Cluster, s.Cluster)
	}
	if f.NewTerms == 0 || f.NewTerms > math.MaxInt64 || s.Term > math.MaxInt64-f.NewTerms {
		return SavedState{}, fmt.Errorf("consensus: can't add %d terms to term %d", f.NewTerms, s.Term)
	}
	meta := s.meta
	meta.Member, meta.Cluster = f.ID, f.Cluster
	meta.Level = cmp.Or(meta.Level, core.SupportedLevels.Min) // an imported state has none
	meta.Index, meta.Term = s.Index+1, s.Term+f.NewTerms      // of an entry that no member has: the restore itself
	meta.Conf = &raftpb.ConfState{Voters: []uint64{f.ID}}
	return savedStateOf(meta), f.write(meta, state)
}

// FollowEnsemble makes a data directory with the state s of a member outside its ensemble, for
// Config.Follows. f.Cluster and f.NewTerms have no effect. The rest is as for FoundEnsemble.
func (s SavedState) FollowEnsemble(f Foundation, state Changes) error {
	if slices.Contains(slices.Concat(s.Voters, s.Learners), f.ID) {
		return fmt.Errorf("consensus: ensemble %016x has a member %d, as standbys are numbered: give it another number",
			s.Cluster, memberid.Number(f.ID))
	}
	meta := s.meta
	meta.Member = f.ID
	return f.write(meta, state)
}

func (f Foundation) write(meta core.Meta, state Changes) (err error) {
	f.FS = cmp.Or[vfs.FS](f.FS, vfs.OS{})
	if err := (vfs.OS{}).MkdirAll(f.Dir); err != nil {
		return fmt.Errorf("consensus: data directory: %w", err)
	}
	lock, err := (vfs.OS{}).Lock(filepath.Join(f.Dir, "LOCK"))
	if err != nil {
		return fmt.Errorf("consensus: data directory %s: %w", f.Dir, err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	where := pathsOf(f.Dir, f.LogDir)
	path := where.checkpoint
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(fmt.Errorf("consensus: there is a checkpoint in %s already", f.Dir), err)
	}
	if err := foundLog(f.FS, where.log, core.LogState{Term: meta.Term, Commit: meta.Index}); err != nil {
		return err
	}
	return checkpointFile{vfs.OS{}, path}.write(0, meta, state)
}

// foundLog makes a log that begins after the committed index of its first state.
func foundLog(disk vfs.FS, dir string, first core.LogState) error {
	l, rec, err := wal.Open(dir, wal.Config{FS: disk})
	if err != nil {
		return err
	}
	if rec.State != nil || len(rec.Entries) > 0 {
		return errors.Join(fmt.Errorf("consensus: there is a log in %s already", dir), l.Close())
	}
	return errors.Join(l.Append(wal.Batch{State: first.Append(nil), Reset: first.Commit}), l.Close())
}
