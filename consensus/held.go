package consensus

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/consensus/internal/checkpoint"
	"github.com/gozkd/gozkd/internal/vfs"
	"github.com/gozkd/gozkd/wal"
)

// Held is what a data directory or a checkpoint file holds, or what was written to one. See docs/adr/0003-restore-founds-a-new-ensemble.md.
type Held struct {
	Member  uint64 // whose it is, or was
	Cluster uint64 // the number of its ensemble; 0: not known yet
	// Index and Term are those of the last entry in the state. Of two members of one ensemble the one with the higher term has more, and with
	// equal terms the one with the higher index.
	Index, Term uint64
	// Checkpoint is the index of the checkpoint: what is above it came from the log.
	Checkpoint uint64
	// Committed is up to where the entries are known to be. What is above may be committed as well, without the member having been told.
	Committed uint64
	// Time is the leader's clock in the last batch; zero if there was none.
	Time             time.Time
	Voters, Learners []uint64 // as raft had them
	TornBytes        int64    // the remains of an append to the log that never was acknowledged

	meta checkpointMeta
}

// ErrNoState says that a data directory holds no state: it is empty, or its member was never let in.
var ErrNoState = errors.New("consensus: no state")

// ReadCheckpoint restores sm from a checkpoint file, which is not changed. A copy that was made of a stopped server's file, or by bbolt's
// Tx.WriteTo of a running one's, is as good as the file. A damaged one is ErrCorruptCheckpoint. If it is that of a running server, that one's next
// checkpoint waits, for a minute at most.
func ReadCheckpoint(path string, sm StateMachine) (Held, error) {
	meta, found, err := checkpointFile{path}.load(true, sm)
	switch {
	case err != nil:
		return Held{}, err
	case !found:
		return Held{}, fmt.Errorf("consensus: checkpoint %s: %w", path, fs.ErrNotExist)
	}
	return heldBy(meta), nil
}

// ReadDir restores sm from a data directory that nobody uses: from the checkpoint, to which all entries of the log are applied, also those that
// are not known to be committed. logDir is where the log is; "" is dir. Nothing is changed, and until it returns no
// server can start with the directory.
//
// A log that is missing or damaged is an error, as for Open, and so is a directory that is in use ([vfs.ErrLocked]). One without any
// state is ErrNoState.
func ReadDir(dir, logDir string, sm StateMachine) (_ Held, err error) {
	cfg := Config{Dir: dir, LogDir: logDir, StateMachine: sm}
	if cfg.LogDir == "" {
		cfg.LogDir = dir
	}
	where := places{checkpoint: cfg.checkpointPath(), log: cfg.walDir(), dir: dir}
	for _, lock := range []string{filepath.Join(dir, "LOCK"), filepath.Join(where.log, "LOCK")} {
		l, err := vfs.LockForReading(lock)
		if err != nil {
			return Held{}, fmt.Errorf("consensus: data directory %s: %w", dir, err)
		}
		defer func() { err = errors.Join(err, l.Close()) }()
	}
	if _, err := os.Stat(dir); err != nil {
		return Held{}, fmt.Errorf("consensus: data directory: %w", err)
	}
	meta, found, err := checkpointFile{where.checkpoint}.load(false, sm)
	if err != nil {
		return Held{}, err
	}
	rec, err := wal.Read(where.log, wal.Config{})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Held{}, err
	}
	r := recovered{meta: checkpointMeta{Streams: streams{}}}
	if found {
		r.meta = meta
	}
	if err := r.join(rec, found, r.meta.Member, where); err != nil {
		return Held{}, err
	}
	if !found {
		return Held{}, fmt.Errorf("%w in data directory %s", ErrNoState, dir)
	}
	h, err := r.fold(sm)
	h.TornBytes = rec.TornBytes
	return h, err
}

// fold applies the log's entries. A core does it, as it would when raft hands them out; it is never asked for anything else.
func (r *recovered) fold(sm StateMachine) (Held, error) {
	checkpoint, committed := r.meta.Index, r.state.Commit
	storage := raft.NewMemoryStorage()
	if err := r.fill(storage); err != nil {
		return Held{}, err
	}
	c, err := newCore(coreConfig{
		id: r.meta.Member, incarnation: r.state.Incarnation + 1, storage: storage, state: r.meta, tail: defaultTailLimits(),
		random: func() uint64 { return 0 }, // for a stream that this core never has
		logger: raftLogger{hclog.NewNullLogger()},
	})
	if err != nil {
		return Held{}, err
	}
	for i := range r.entries {
		var out output
		if err := c.handOut(&out, &raftpb.Message{Entries: r.entries[i : i+1]}); err != nil {
			return Held{}, err
		}
		sm.Apply(out.batches)
	}
	h := heldBy(c.meta())
	h.Checkpoint, h.Committed = checkpoint, max(checkpoint, min(committed, h.Index))
	return h, nil
}

func heldBy(m checkpointMeta) Held {
	h := Held{
		Member: m.Member, Cluster: m.Cluster, Index: m.Index, Term: m.Term, Checkpoint: m.Index, Committed: m.Index,
		Voters: m.Conf.GetVoters(), Learners: m.Conf.GetLearners(), meta: m,
	}
	if m.TimeMs > 0 {
		h.Time = time.UnixMilli(m.TimeMs)
	}
	return h
}

// WriteCheckpoint writes what sm's CaptureAll gave, which is the state of h, to a new checkpoint file, and syncs it. A file that is
// there is an error that wraps [fs.ErrExist]. After another error there may be a file that is of no use.
//
// room is asked before each part of some megabytes, and its error ends it: the disk may be one that others need. Nil: there is room.
func (h Held) WriteCheckpoint(path string, state Changes, room func() error) error {
	return checkpoint.Create(path, h.meta.append(nil), state.Range, room)
}
