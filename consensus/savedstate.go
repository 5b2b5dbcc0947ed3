package consensus

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/gozkd/gozkd/consensus/internal/checkpoint"
	"github.com/gozkd/gozkd/consensus/internal/core"
	"github.com/gozkd/gozkd/internal/vfs"
	"github.com/gozkd/gozkd/wal"
)

// SavedState describes the state in a data directory or a checkpoint file. See
// docs/adr/0003-restore-founds-a-new-ensemble.md.
type SavedState struct {
	Member  uint64 // the member that it belongs to, or belonged to
	Level   Level  // the active feature level
	Cluster uint64 // identifies its ensemble; 0: not known yet
	// Index and Term are those of the last entry in the state. Of two members of an ensemble, the
	// member with the higher term has more; with equal terms, the member with the higher index.
	Index, Term uint64
	// Checkpoint is the index of the checkpoint. Later entries came from the log.
	Checkpoint uint64
	// Committed is the index up to which entries are known to be committed. Later entries may be
	// committed too, if the member was not told.
	Committed        uint64
	Time             time.Time // the leader's clock in the last batch; zero if there was none
	Voters, Learners []uint64  // raft's membership
	TornBytes        int64     // size of an incomplete append to the log, which was never acknowledged

	meta core.Meta
}

// ErrNoState means that a data directory has no state: it is empty, or the member was never let in.
var ErrNoState = errors.New("consensus: no state")

// ReadCheckpoint restores sm from a checkpoint file, without changing the file. A copy of a stopped
// server's file is as good as the file itself, and so is a copy of a running server's file made by
// bbolt's Tx.WriteTo. A damaged file returns ErrCorruptCheckpoint. Reading the file of a running
// server delays that server's next checkpoint.
func ReadCheckpoint(path string, sm StateMachine) (SavedState, error) {
	meta, found, err := checkpointFile{checkpoint.Saved{}, path}.load(checkpoint.NewestOfTwo, core.SupportedLevels, sm)
	switch {
	case err != nil:
		return SavedState{}, err
	case !found:
		return SavedState{}, fmt.Errorf("consensus: checkpoint %s: %w", path, fs.ErrNotExist)
	}
	return savedStateOf(meta), nil
}

// ReadDir restores sm from a data directory that no server uses: from the checkpoint, plus all
// entries of the log, including those that are not known to be committed. logDir is the directory
// of the log; "" means dir. Nothing is changed. No server can start with the directory until
// ReadDir returns.
//
// If the newest checkpoint is damaged, ReadDir begins with the previous checkpoint, as Open does.
//
// A missing or damaged log is an error, as for Open, and so is a directory in use
// ([vfs.ErrLocked]). A directory without state returns ErrNoState.
func ReadDir(dir, logDir string, sm StateMachine) (SavedState, error) {
	return ReplayDir(dir, logDir, sm, nil)
}

// ReplayDir is ReadDir, and then applies the entries that more returns for the state of the
// directory. They must follow it. more may be nil.
func ReplayDir(
	dir, logDir string, sm StateMachine, more func(SavedState) iter.Seq2[LogEntry, error],
) (_ SavedState, err error) {
	where := pathsOf(dir, logDir)
	for _, lock := range []string{filepath.Join(dir, "LOCK"), filepath.Join(where.log, "LOCK")} {
		l, err := vfs.LockForReading(lock)
		if err != nil {
			return SavedState{}, fmt.Errorf("consensus: data directory %s: %w", dir, err)
		}
		defer func() { err = errors.Join(err, l.Close()) }()
	}
	if _, err := os.Stat(dir); err != nil {
		return SavedState{}, fmt.Errorf("consensus: data directory: %w", err)
	}
	loaded, err := checkpointFile{checkpoint.Saved{}, where.checkpoint}.loadNewest(core.SupportedLevels, sm)
	if err != nil {
		return SavedState{}, err
	}
	rec, err := wal.Read(where.log, wal.Config{})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return SavedState{}, err
	}
	r := recovered{meta: core.Meta{Streams: core.Streams{}}}
	if loaded.found {
		r.meta = loaded.meta
	}
	if err := loaded.continued(&r, r.join(rec, loaded.found, r.meta.Member, where)); err != nil {
		return SavedState{}, err
	}
	if !loaded.found {
		return SavedState{}, fmt.Errorf("%w in data directory %s", ErrNoState, dir)
	}
	if err := r.checkLevels(core.SupportedLevels, where); err != nil {
		return SavedState{}, err
	}
	s, err := r.replay(func(_ *raftpb.Entry, batches []Batch) { sm.Apply(batches) }, more)
	s.TornBytes = rec.TornBytes
	return s, err
}

// replay hands out the batches of the log's entries, and of those that more, which may be nil,
// returns for the state after them, from a core that is used for nothing else.
func (r *recovered) replay(
	apply func(e *raftpb.Entry, batches []Batch), more func(SavedState) iter.Seq2[LogEntry, error],
) (SavedState, error) {
	p, err := r.replayer(apply)
	if err != nil {
		return SavedState{}, err
	}
	for _, e := range r.entries {
		if err := p.apply(e); err != nil {
			return SavedState{}, err
		}
	}
	if more != nil {
		if err := p.follow(more(p.state())); err != nil {
			return SavedState{}, err
		}
	}
	s := p.state()
	s.Committed = max(s.Checkpoint, min(r.state.Commit, s.Index))
	return s, nil
}

func savedStateOf(m core.Meta) SavedState {
	s := SavedState{
		Member: m.Member, Level: m.Level, Cluster: m.Cluster, Index: m.Index, Term: m.Term, Checkpoint: m.Index, Committed: m.Index,
		Voters: m.Conf.GetVoters(), Learners: m.Conf.GetLearners(), meta: m,
	}
	if m.TimeMs > 0 {
		s.Time = time.UnixMilli(m.TimeMs)
	}
	return s
}

// WriteCheckpoint writes state, which CaptureAll of a state machine with the state of s returned,
// to a new checkpoint file, and syncs it. An existing file is an error that wraps [fs.ErrExist].
// After another error there may be an unusable file.
//
// room is called before each megabyte, and its error ends the writing: others may need the disk. A
// nil room means that there is room.
func (s SavedState) WriteCheckpoint(path string, state Changes, room func() error) error {
	return checkpoint.Create(vfs.OS{}, path, s.meta.Append(nil), state.Range, room)
}
