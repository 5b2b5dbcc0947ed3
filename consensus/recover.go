package consensus

import (
	"errors"
	"fmt"
	"path/filepath"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/gozkd/gozkd/internal/vfs"
	"github.com/gozkd/gozkd/wal"
)

// recovered is what a data directory holds. A member without state has none of it: no Conf in meta, no entries.
type recovered struct {
	meta    checkpointMeta
	state   logState
	tail    []*raftpb.Entry // up to the checkpoint, kept for others; the first one's index and term are all that counts of it
	entries []*raftpb.Entry // behind the checkpoint
	useless bool            // the log holds entries of another history
	earlier uint64          // newest incarnation of this server's stream that the checkpoint knows
	filled  bool            // the log in memory is that of an earlier node
}

// recover reads checkpoint and log, and begins a new incarnation on disk.
func (n *Node) recover(r *recovered) error {
	cfg := &n.cfg
	if err := (vfs.OS{}).MkdirAll(cfg.Dir); err != nil {
		return fmt.Errorf("consensus: data directory: %w", err)
	}
	lock, err := (vfs.OS{}).Lock(filepath.Join(cfg.Dir, "LOCK"))
	if err != nil {
		return fmt.Errorf("consensus: data directory %s: %w", cfg.Dir, err)
	}
	n.lock = lock
	n.checkpoints = checkpointFile{cfg.checkpointPath()}
	if err := n.removeReceived(); err != nil {
		return err
	}
	if err := (vfs.OS{}).SyncDir(cfg.Dir); err != nil { // the process before may have died behind a rename: it was not to be built on yet
		return fmt.Errorf("consensus: data directory: %w", err)
	}
	meta, found, err := n.checkpoints.load(false, cfg.StateMachine)
	if err != nil {
		return err
	}
	log, rec, err := wal.Open(cfg.walDir(), wal.Config{
		FS: cfg.FS, SegmentBytes: cfg.SegmentBytes, NoSync: cfg.NoSync, Logger: cfg.Logger.Named("wal"), OnSync: cfg.OnSync,
	})
	if err != nil {
		return err
	}
	n.log = log
	n.logBytes.Store(log.Size())
	where := places{checkpoint: cfg.checkpointPath(), log: cfg.walDir(), dir: cfg.Dir}
	if found {
		r.meta = meta
	}
	if err := r.join(rec, found, cfg.ID, where); err != nil {
		return err
	}
	if err := r.checkAlone(cfg, "data directory "+cfg.Dir); err != nil {
		return err
	}
	return log.Append(r.begin(n.firstIncarnation(), n.random()))
}

// checkAlone refuses the state of one of several members where the others are not configured.
func (r *recovered) checkAlone(cfg *Config, where string) error {
	if n := len(r.meta.Conf.GetVoters()) + len(r.meta.Conf.GetLearners()); n > 1 && cfg.PeerListener == nil {
		return fmt.Errorf("consensus: %s is that of one of %d members, but no others are configured: name all servers of the ensemble", where, n)
	}
	return nil
}

// places are named in errors.
type places struct{ checkpoint, log, dir string }

// join puts checkpoint and log together. A member with state got its log, then its checkpoint, then entries; so one without the other is a
// loss. A member without state may have a log that holds no entry.
func (r *recovered) join(rec wal.Recovered, found bool, id uint64, where places) (err error) {
	if r.state, err = decodeLogState(rec.State); err != nil {
		return err
	}
	switch {
	case found && rec.State == nil:
		return fmt.Errorf("consensus: the checkpoint %s is there, but the log in %s is missing: restore it from a copy",
			where.checkpoint, where.log)
	case !found && (len(rec.Entries) > 0 || r.state.Commit > 1):
		return fmt.Errorf("consensus: the log in %s has entries, but the checkpoint %s is missing: restore it from a copy",
			where.log, where.checkpoint)
	case !found:
		r.state.Commit = 0
		return nil
	}
	if r.meta.Member != id {
		return fmt.Errorf("consensus: data directory %s belongs to member %d, this is member %d", where.dir, r.meta.Member, id)
	}
	if err := r.split(rec.Entries, where); err != nil {
		return err
	}
	r.useless = r.useless || len(rec.Entries) == 0 // it may begin before the checkpoint
	last := r.meta.Index + uint64(len(r.entries))
	if r.state.Commit > last {
		return fmt.Errorf("%w: the log in %s ends at entry %d, but entry %d was committed: restore the data directory from a copy",
			wal.ErrCorrupt, where.log, last, r.state.Commit)
	}
	r.state.Term, r.state.Commit = max(r.state.Term, r.meta.Term), max(r.state.Commit, r.meta.Index)
	r.earlier = r.meta.Streams[id].incarnation
	return nil
}

// split sorts the log's entries into those up to the checkpoint and those behind it.
func (r *recovered) split(logged []wal.Entry, where places) error {
	for _, e := range logged {
		entry, err := decodeEntry(e.Index, e.Data)
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
			return fmt.Errorf("%w: the checkpoint ends at entry %d, but the log in %s goes on with entry %d: restore the data directory from a copy",
				wal.ErrCorrupt, want-1, where.log, e.Index)
		}
		// A checkpoint of another member was put in the place of ours, and a crash came before the log was emptied: these
		// entries are of another history. What the log says is committed is in the checkpoint.
		r.tail, r.entries, r.useless = nil, nil, true
		r.state.Commit = r.meta.Index
		return nil
	}
	if len(r.tail) > 0 && r.tail[len(r.tail)-1].GetIndex() != r.meta.Index {
		r.tail, r.useless = nil, true // it ends before the checkpoint, which came from another member
	}
	return nil
}

// begin is what the log is given at the start: a new incarnation, on disk before the first request of it can leave (C2).
// Entries that are of no use are dropped.
func (r *recovered) begin(first, random uint64) wal.Batch {
	r.nextIncarnation(first, random)
	b := wal.Batch{State: r.state.append(nil)}
	if r.useless {
		b.Reset = r.meta.Index
	}
	return b
}

// nextIncarnation: where nothing is known of earlier lives, of which requests may still be on their way, the number is
// taken from the clock.
func (r *recovered) nextIncarnation(first, random uint64) {
	switch {
	case r.earlier > r.state.Incarnation:
		r.state.Incarnation = leap(r.earlier, random)
		return
	case r.state.Incarnation == 0:
		r.state.Incarnation = first
	}
	r.state.Incarnation++
}

// fill puts it into raft's log in memory.
func (r *recovered) fill(storage *raft.MemoryStorage) error {
	hard := storage.SetHardState(r.state.hardState())
	if r.meta.Conf == nil || r.filled {
		return hard
	}
	index, term := r.meta.Index, r.meta.Term
	var tail []*raftpb.Entry
	if len(r.tail) > 0 {
		index, term, tail = r.tail[0].GetIndex(), r.tail[0].GetTerm(), r.tail[1:]
	}
	return errors.Join(hard, storage.ApplySnapshot(snapshotOf(index, term, r.meta.Conf)), storage.Append(tail), storage.Append(r.entries))
}

// begin writes the first state of a member of a new ensemble. w.mu is held.
func (w *logWriter) begin(first logState) error {
	w.state.Term, w.state.Vote, w.state.Commit = first.Term, first.Vote, first.Commit
	if err := w.log.Append(wal.Batch{State: w.state.append(nil), Reset: first.Commit}); err != nil {
		return err
	}
	w.written = w.state
	return nil
}
