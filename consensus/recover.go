package consensus

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/gozkd/gozkd/consensus/internal/checkpoint"
	"github.com/gozkd/gozkd/consensus/internal/core"
	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/internal/vfs"
	"github.com/gozkd/gozkd/wal"
)

// recovered is the content of a data directory. For a member without state, meta has no Conf and
// there are no entries.
type recovered struct {
	meta    core.Meta
	state   core.LogState
	tail    []*raftpb.Entry // up to the checkpoint, kept for other members; of the first entry only index and term count
	entries []*raftpb.Entry // after the checkpoint
	useless bool            // the log holds entries of another history
	earlier uint64          // newest incarnation of this server's stream that the checkpoint knows
	past    uint64          // newest incarnation that the directory knew before this start
	filled  bool            // raft's storage was filled by an earlier node
	level   Level           // see checkLevels
}

// recover reads checkpoint and log, and begins a new incarnation on disk.
func (n *Node) recover(r *recovered) error {
	cfg := n.cfg
	err := cfg.DirFS.MkdirAll(cfg.Dir)
	if err == nil {
		n.lock, err = cfg.DirFS.Lock(filepath.Join(cfg.Dir, "LOCK"))
	}
	switch {
	case errors.Is(err, vfs.ErrLocked):
		return fmt.Errorf("consensus: data directory %s: %w", cfg.Dir, err)
	case err != nil:
		return fmt.Errorf("consensus: data directory %s: %w; make it writable, or choose another directory", cfg.Dir, err)
	}
	n.checkpoints.file = checkpointFile{cfg.DirFS, cfg.checkpointPath()}
	if err := n.checkpoints.removeReceived(); err != nil {
		return err
	}
	// The previous process may have died after a rename and before the sync that makes it durable.
	if err := cfg.DirFS.SyncDir(cfg.Dir); err != nil {
		return fmt.Errorf("consensus: data directory: %w", err)
	}
	loaded, err := n.checkpoints.file.loadNewest(cfg.Levels, cfg.StateMachine)
	if err != nil {
		return err
	}
	walConfig := wal.Config{
		FS: cfg.FS, SegmentBytes: cfg.SegmentBytes, NoSync: cfg.NoSync, Logger: cfg.Logger.Named("wal"), OnSync: cfg.OnSync,
		From: loaded.meta.Index, MustExist: loaded.found,
	}
	if cfg.PeerListener != nil || cfg.ArchiveBytes > 0 { // others need earlier entries
		walConfig.Keep = int64(max(core.DefaultRetention(cfg.MemoryBytes).Bytes, cfg.ArchiveBytes))
	}
	where := pathsOf(cfg.Dir, cfg.LogDir)
	log, rec, err := wal.Open(cfg.walDir(), walConfig)
	switch {
	case loaded.found && errors.Is(err, fs.ErrNotExist):
		return where.noLog()
	case err != nil:
		return err
	}
	n.log.writer.log = log
	n.log.writer.place = &place{cfg: cfg, lock: n.lock, log: log}
	n.checkpoints.place = n.log.writer.place
	if loaded.found {
		r.meta = loaded.meta
	}
	if err := loaded.continued(r, r.join(rec, loaded.found, cfg.ID, where)); err != nil {
		return err
	}
	if err := errors.Join(r.checkAlone(cfg, "data directory "+cfg.Dir), r.checkLevels(cfg.Levels, where)); err != nil {
		return err
	}
	if loaded.damage != nil {
		// The next checkpoint must be based on the state that this start begins with.
		n.cfg.Logger.Error("the newest checkpoint is damaged: started from the previous checkpoint and the log, which hold everything; check the disk",
			"damage", loaded.damage, "checkpoint", r.meta.Index, "log", r.meta.Index+uint64(len(r.entries)))
		n.reverted = true
		if err := checkpoint.Revert(n.checkpoints.file.disk, n.checkpoints.file.path); err != nil {
			return err
		}
	}
	return log.Append(r.begin(n.clockIncarnation(), n.random()))
}

// checkAlone refuses, if no other members are configured, the state of one of several members, and
// no state at all if this member may not form an ensemble.
func (r *recovered) checkAlone(cfg *Config, where string) error {
	if r.meta.Conf == nil && cfg.JoinOnly && cfg.PeerListener == nil {
		return fmt.Errorf("consensus: %s is empty, and this server may not begin with an empty tree (db.autocreate=false): "+
			"restore a backup, or run gozkd init if the server is new", where)
	}
	alone := cfg.PeerListener == nil && !cfg.Follows
	if n := len(r.meta.Conf.GetVoters()) + len(r.meta.Conf.GetLearners()); n > 1 && alone {
		return fmt.Errorf("consensus: %s belongs to one of %d members, but no others are configured: name all servers of the ensemble", where, n)
	}
	return nil
}

// checkLevels refuses a log that activates an unsupported level, and notes the highest level of the
// directory. Whether the entry is committed is not known yet, but it was proposed because all
// members supported the level.
func (r *recovered) checkLevels(levels LevelRange, where dataPaths) error {
	r.level = r.meta.Level
	for _, e := range r.entries {
		if l := core.EntryLevel(e); l != 0 {
			r.level = max(r.level, l)
			if err := levels.Check(l, fmt.Sprintf("entry %d of the log in %s", e.GetIndex(), where.log)); err != nil {
				return err
			}
		}
	}
	return nil
}

type dataPaths struct{ checkpoint, log, dir string }

// pathsOf returns the paths below a data directory and a directory of the log, which may be "".
func pathsOf(dir, logDir string) dataPaths {
	return dataPaths{filepath.Join(dir, "checkpoint.db"), filepath.Join(cmp.Or(logDir, dir), "wal"), dir}
}

func (p dataPaths) noLog() error {
	dir := filepath.Dir(p.log)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("consensus: the checkpoint %s exists, but the directory of the log, %s, does not: "+
			"correct its name, or mount its disk; otherwise, %s", p.checkpoint, dir, remedy)
	}
	return fmt.Errorf("consensus: the checkpoint %s exists, but the log in %s is missing: "+
		"if the log was in another directory until now (dataLogDir), move that directory's wal to %s; "+
		"if its disk is not mounted, mount it; otherwise, %s", p.checkpoint, p.log, dir, remedy)
}

// join combines checkpoint and log. A member with state got its log first, then its checkpoint,
// then entries; so state or entries alone mean a loss. A member without state may have a log
// without entries.
func (r *recovered) join(rec wal.Recovered, found bool, id uint64, where dataPaths) (err error) {
	if r.state, err = core.DecodeLogState(rec.State); err != nil {
		return err
	}
	switch {
	case found && rec.State == nil:
		return where.noLog()
	case !found && (len(rec.Entries) > 0 || r.state.Commit > 1):
		return fmt.Errorf("consensus: the log in %s has entries, but the checkpoint %s is missing: "+
			"if it is in another directory, or on a disk that is not mounted, correct that; otherwise, %s",
			where.log, where.checkpoint, remedy)
	case !found:
		r.state.Commit = 0
		return nil
	}
	if r.meta.Member != id {
		return fmt.Errorf("consensus: data directory %s belongs to member %d, not %d: correct dataDir or myid",
			where.dir, memberid.Number(r.meta.Member), memberid.Number(id))
	}
	if err := r.split(rec.Entries, where); err != nil {
		return err
	}
	r.useless = r.useless || len(rec.Entries) == 0 // an empty log may begin before the checkpoint
	last := r.meta.Index + uint64(len(r.entries))
	if r.state.Commit > last {
		return fmt.Errorf("%w: the log in %s ends at entry %d, but entry %d was committed: %s",
			wal.ErrCorrupt, where.log, last, r.state.Commit, remedy)
	}
	r.state.Term, r.state.Commit = max(r.state.Term, r.meta.Term), max(r.state.Commit, r.meta.Index)
	r.earlier = r.meta.Streams[id].Incarnation
	return nil
}

// split sorts the log's entries into those up to the checkpoint and those after it.
func (r *recovered) split(logged []wal.Entry, where dataPaths) error {
	for _, e := range logged {
		entry, err := core.DecodeEntry(e.Index, e.Data)
		if err != nil {
			return err
		}
		want := r.meta.Index + uint64(len(r.entries)) + 1
		switch {
		case e.Index < r.meta.Index:
			r.tail = append(r.tail, entry)
			continue
		case e.Index == r.meta.Index:
			if entry.GetTerm() == r.meta.Term {
				r.tail = append(r.tail, entry)
				continue
			}
		case e.Index == want && entry.GetTerm() >= r.meta.Term:
			r.entries = append(r.entries, entry)
			continue
		case e.Index != want && len(r.tail) == 0:
			return fmt.Errorf("%w: the checkpoint ends at entry %d, but the log in %s continues with entry %d: %s",
				wal.ErrCorrupt, want-1, where.log, e.Index, remedy)
		}
		// A checkpoint of another member replaced ours, and a crash came before the log was
		// emptied: these entries belong to another history. Everything that the log calls committed
		// is in the checkpoint.
		r.tail, r.entries, r.useless = nil, nil, true
		r.state.Commit = r.meta.Index
		return nil
	}
	if len(r.tail) > 0 && r.tail[len(r.tail)-1].GetIndex() != r.meta.Index {
		r.tail, r.useless = nil, true // the log ends before the checkpoint, which came from another member
	}
	return nil
}

// begin returns the first append of a start: a new incarnation, which must be durable before its
// first request leaves (C2). Useless entries are dropped.
func (r *recovered) begin(clock, random uint64) wal.Batch {
	r.nextIncarnation(clock, random)
	b := wal.Batch{State: r.state.Append(nil)}
	if r.useless {
		b.Reset = r.meta.Index
	}
	return b
}

// nextIncarnation begins a new incarnation, which no other start can have had: the directory may be
// a copy, and other starts may have followed on the same state. The number comes from the clock, or
// is a random distance above those that the directory knows if the clock is behind.
// A member without a checkpoint is fresh, and has nothing that could be outdated.
func (r *recovered) nextIncarnation(clock, random uint64) {
	r.past = max(r.earlier, r.state.Incarnation)
	r.state.Incarnation = max(clock, core.SkipIncarnations(r.past, random))
	r.state.Outdated = r.state.Outdated && r.meta.Conf != nil
}

// remedy is what to do about a data directory of which a part is lost. A copy is no remedy for a
// member of an ensemble: it lacks what the member has acknowledged since.
const remedy = "if other members have the data, empty the data directory and the log directory, and the others will send the data; " +
	"otherwise make a new data directory with gozkd restore"

func (r *recovered) fill(storage *raft.MemoryStorage) error {
	hard := storage.SetHardState(r.state.HardState())
	if r.meta.Conf == nil || r.filled {
		return hard
	}
	index, term := r.meta.Index, r.meta.Term
	var tail []*raftpb.Entry
	if len(r.tail) > 0 {
		index, term, tail = r.tail[0].GetIndex(), r.tail[0].GetTerm(), r.tail[1:]
	}
	return errors.Join(hard, storage.ApplySnapshot(core.Snapshot(index, term, r.meta.Conf)), storage.Append(tail), storage.Append(r.entries))
}
