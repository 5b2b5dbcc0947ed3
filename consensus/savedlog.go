package consensus

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/gozkd/gozkd/consensus/internal/checkpoint"
	"github.com/gozkd/gozkd/consensus/internal/core"
	"github.com/gozkd/gozkd/internal/vfs"
	"github.com/gozkd/gozkd/wal"
)

// SavedLog is a checkpoint and the log around it, for tools that print them.
type SavedLog struct {
	// State is that of the checkpoint. Zero: there is no checkpoint, all entries are in Earlier.
	State SavedState
	// Earlier are the entries up to the checkpoint that the log still holds. Their effect is in the
	// checkpoint. Of a stream that did not begin in the log, the first request counts as accepted;
	// Sure says that the streams reach the positions that the checkpoint has.
	Earlier []LoggedBatch
	Sure    bool
	// Later are the entries after the checkpoint, as a server would apply them.
	Later []LoggedBatch
	// Committed is the index up to which entries are known to be committed.
	Committed uint64
	// TornBytes is the size of an incomplete append, at TornOffset of the file TornPath. It was
	// never acknowledged; if a server uses the directory, it is being written.
	TornBytes, TornOffset int64
	TornPath              string
	// Damage is nil, or the damage (a [wal.CorruptError]) that the log ends before.
	Damage error
}

// LoggedBatch is a batch with the term of its entry.
type LoggedBatch struct {
	Batch
	Term uint64
}

// readAttempts bounds how often the directory of a running server is read: the server may write a
// checkpoint, and drop a segment of its log, between two reads.
const readAttempts = 5

// ReadLog reads a data directory, and restores sm from its checkpoint. Unlike [ReadDir], it takes
// no lock, so a server may use the directory, and it returns what precedes damage in the log.
// logDir is the directory of the log; "" means dir. A directory without checkpoint and log returns
// ErrNoState.
func ReadLog(dir, logDir string, sm StateMachine) (l SavedLog, err error) {
	where := pathsOf(dir, logDir)
	if _, err := os.Stat(dir); err != nil {
		return SavedLog{}, fmt.Errorf("consensus: data directory: %w", err)
	}
	for range readAttempts {
		l, err = readLog(where, sm)
		if err == nil && l.Damage == nil || !errors.Is(CheckUnused(dir), vfs.ErrLocked) {
			return l, err
		}
	}
	return l, err
}

// CheckUnused returns an error that wraps [vfs.ErrLocked] and names the process if a server uses a
// directory for its data or its log. A missing directory is unused.
func CheckUnused(dir string) error {
	l, err := vfs.LockForReading(filepath.Join(dir, "LOCK"))
	if err != nil {
		return err
	}
	return l.Close()
}

func readLog(where dataPaths, sm StateMachine) (SavedLog, error) {
	meta, found, err := checkpointFile{checkpoint.Saved{}, where.checkpoint}.load(checkpoint.Newest, core.SupportedLevels, sm)
	if err != nil {
		return SavedLog{}, err
	}
	rec, err := wal.Read(where.log, wal.Config{})
	if errors.Is(err, wal.ErrCorrupt) {
		return newSavedLog(meta, found, rec, where, err)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return SavedLog{}, err
	}
	if !found && len(rec.Entries) == 0 {
		return SavedLog{}, fmt.Errorf("%w in data directory %s", ErrNoState, where.dir)
	}
	return newSavedLog(meta, found, rec, where, nil)
}

// ReadSegment reads one segment file of a log. The result has no checkpoint.
func ReadSegment(path string) (SavedLog, error) {
	rec, err := wal.ReadSegment(path)
	return withoutCheckpoint(path, rec, err)
}

// ReadWAL reads the directory of a log without its data directory. The result has no checkpoint.
func ReadWAL(dir string) (SavedLog, error) {
	rec, err := wal.Read(dir, wal.Config{})
	return withoutCheckpoint(dir, rec, err)
}

func withoutCheckpoint(path string, rec wal.Recovered, err error) (SavedLog, error) {
	if err != nil && !errors.Is(err, wal.ErrCorrupt) {
		return SavedLog{}, err
	}
	return newSavedLog(core.Meta{}, false, rec, dataPaths{log: path}, err)
}

func newSavedLog(meta core.Meta, found bool, rec wal.Recovered, where dataPaths, damage error) (SavedLog, error) {
	l := SavedLog{TornBytes: rec.TornBytes, TornOffset: rec.TornOffset, TornPath: rec.TornPath, Damage: damage}
	r := recovered{meta: core.Meta{Streams: core.Streams{}}}
	var err error
	if !found {
		if r.state, err = core.DecodeLogState(rec.State); err != nil {
			return SavedLog{}, err
		}
		for _, e := range rec.Entries {
			entry, err := core.DecodeEntry(e.Index, e.Data)
			if err != nil {
				return SavedLog{}, err
			}
			r.tail = append(r.tail, entry)
		}
		l.Committed = r.state.Commit
		return l, l.readEarlier(&r)
	}
	r.meta = meta
	l.State = savedStateOf(meta)
	if damage == nil {
		err = r.join(rec, true, meta.Member, where)
	} else if r.state, err = core.DecodeLogState(rec.State); err == nil {
		err = r.split(rec.Entries, where)
		last := meta.Index + uint64(len(r.entries))
		r.state.Term, r.state.Commit = max(r.state.Term, meta.Term), max(meta.Index, min(r.state.Commit, last))
	}
	if errors.Is(err, wal.ErrCorrupt) && damage == nil {
		l.Damage = err
		return l, nil
	}
	if err := errors.Join(err, r.checkLevels(core.SupportedLevels, where)); err != nil {
		return SavedLog{}, err
	}
	l.Committed = max(r.state.Commit, meta.Index)
	if err := l.readEarlier(&r); err != nil {
		return SavedLog{}, err
	}
	_, err = r.replay(func(e *raftpb.Entry, batches []Batch) {
		for _, b := range batches {
			l.Later = append(l.Later, LoggedBatch{b, e.GetTerm()})
		}
	}, nil)
	return l, err
}

// readEarlier reads the entries up to the checkpoint.
func (l *SavedLog) readEarlier(r *recovered) error {
	reader := core.LogReader{Streams: core.Streams{}}
	for _, e := range r.tail {
		b, err := reader.Read(e)
		if err != nil {
			return fmt.Errorf("consensus: entry %d: %w", e.GetIndex(), err)
		}
		l.Earlier = append(l.Earlier, LoggedBatch{b, e.GetTerm()})
	}
	known := maps.Clone(r.meta.Streams)
	maps.DeleteFunc(known, func(server uint64, _ core.StreamPosition) bool {
		_, seen := reader.Streams[server]
		return !seen
	})
	l.Sure = maps.Equal(known, reader.Streams)
	return nil
}
