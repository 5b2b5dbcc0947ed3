package consensus

import (
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/gozkd/gozkd/consensus/internal/core"
	"github.com/gozkd/gozkd/consensus/internal/turn"
	"github.com/gozkd/gozkd/wal"
)

const (
	// maxAppendBytes is the most that logWriter.most can be.
	maxAppendBytes = 4 << 20
	// entryOverhead is more than an entry takes in the log besides its data.
	entryOverhead = 32
)

// checkpointReplacer puts a complete checkpoint of another member in the place of ours, durably.
type checkpointReplacer interface{ replace(path string) error }

// logWriter does the log's work: it combines appends into few writes, and syncs only when a
// response requires that. In memory it only keeps raft's storage. A logWriter is not safe for
// concurrent use.
type logWriter struct {
	log         *wal.Log // nil: in memory
	storage     *raft.MemoryStorage
	checkpoints checkpointReplacer
	// done gets the responses of durable appends, and the checkpoint that they installed, if any.
	done  func(responses []*raftpb.Message, installed *turn.Received)
	watch *writeWatch // may be nil
	place *place      // nil: in memory

	state   core.LogState // newest
	written core.LogState // in the log
	settle  bool          // the commit index is to be written
	marked  bool          // the state has a mark that is to be written

	queued      []*raftpb.Message
	queuedBytes int
	// most bounds the entries of one write, unless a single entry is longer: see enqueue. The WAL's
	// limit for an append is far higher.
	most int

	// Buffers, reused from one flush to the next.
	batches []wal.Batch
	entries []wal.Entry
	data    []byte // the heads of the entries, and the state
}

// writes reports whether work may need the disk: it brings entries, a term, a vote or a checkpoint,
// or is about the log itself. Answers to a leader, and its commit index, do not.
func (w *logWriter) writes(items []turn.LogWork) bool {
	if w.state.Term != w.written.Term || w.state.Vote != w.written.Vote {
		return true
	}
	return slices.ContainsFunc(items, func(item turn.LogWork) bool {
		m := item.Append
		return item.Install != nil || item.Mark != nil || item.Compact > 0 || item.PersistCommit ||
			m != nil && (len(m.GetEntries()) > 0 ||
				m.Term != nil && (m.GetTerm() != w.written.Term || m.GetVote() != w.written.Vote))
	})
}

func (w *logWriter) work(items []turn.LogWork) error {
	var compact uint64
	disk := w.writes(items)
	for _, item := range items {
		compact = max(compact, item.Compact)
		w.settle = w.settle || item.PersistCommit
		if item.Mark != nil {
			if err := w.mark(*item.Mark); err != nil {
				return err
			}
		}
		if item.Append == nil {
			continue
		}
		if item.Install != nil {
			// Earlier appends must be durable first: the checkpoint replaces the log.
			if err := w.flush(); err != nil {
				return err
			}
			if err := w.install(item.Append, item.Install); err != nil {
				return err
			}
			continue
		}
		if err := w.enqueue(item.Append); err != nil {
			return err
		}
	}
	if err := w.flush(); err != nil {
		return err
	}
	if compact > 0 && w.log != nil {
		w.watch.begin()
		defer w.watch.end()
		if err := w.log.Compact(compact); err != nil {
			return err
		}
	}
	if !disk {
		return nil
	}
	return w.place.checkNowAndThen()
}

// enqueue queues an append for the next flush. If the entries of that write would be longer than
// most, the queue is flushed first. An append that is longer by itself is written in parts, as
// if raft had given several appends: a crash may leave the first parts alone. Therefore
//
//   - each part has the term and the vote of the whole append: no entry is in the log before its
//     term;
//   - the commit index, up to which the log must reach, and the responses come with the last part.
func (w *logWriter) enqueue(m *raftpb.Message) error {
	entries := m.GetEntries()
	first, bytes := 0, 0 // of the part
	for i, e := range entries {
		size := len(e.GetData()) + entryOverhead
		if w.queuedBytes+bytes+size > w.most {
			if err := w.flush(); err != nil {
				return err
			}
			if bytes > 0 && bytes+size > w.most {
				commit := w.state.Commit
				w.queued = append(w.queued, &raftpb.Message{Term: m.Term, Vote: m.Vote, Commit: &commit, Entries: entries[first:i]})
				if err := w.flush(); err != nil {
					return err
				}
				first, bytes = i, 0
			}
		}
		bytes += size
	}
	if first > 0 {
		m = &raftpb.Message{Term: m.Term, Vote: m.Vote, Commit: m.Commit, Entries: entries[first:], Responses: m.Responses}
	}
	w.queued, w.queuedBytes = append(w.queued, m), w.queuedBytes+bytes
	return nil
}

// mark puts a mark into the state, after the state of all earlier appends.
func (w *logWriter) mark(m core.Mark) error {
	if err := w.flush(); err != nil {
		return err
	}
	w.state.Incarnation, w.state.Outdated, w.marked = m.Incarnation, m.Outdated, true
	if m.Term != 0 && m.Term >= w.state.Term {
		w.state.Term, w.state.Vote = m.Term, m.Vote
	}
	return nil
}

// install puts a checkpoint of another member in the place of checkpoint and log. A crash between
// the two steps leaves a checkpoint that is newer than the log, which recovery recognizes
// (recovered.split).
func (w *logWriter) install(m *raftpb.Message, r *turn.Received) error {
	if m.Term != nil {
		w.state.Term, w.state.Vote, w.state.Commit = m.GetTerm(), m.GetVote(), m.GetCommit()
	}
	w.state.Commit = max(w.state.Commit, r.Meta.Index)
	w.state.Incarnation = r.Incarnation
	if err := w.replace(r); err != nil {
		return err
	}
	if r.Load != nil {
		if err := r.Load(); err != nil {
			return err
		}
	}
	if err := w.storage.ApplySnapshot(m.GetSnapshot()); err != nil {
		return err
	}
	if err := w.storage.Append(m.GetEntries()); err != nil {
		return err
	}
	w.done(m.GetResponses(), r)
	return nil
}

// replace puts a checkpoint in the place of checkpoint and log on disk.
func (w *logWriter) replace(r *turn.Received) error {
	if w.log == nil {
		return nil
	}
	w.watch.begin()
	defer w.watch.end()
	if err := w.checkpoints.replace(r.Path); err != nil {
		return err
	}
	return w.append(wal.Batch{State: w.state.Append(nil), Reset: r.Meta.Index})
}

// flush writes the queued appends with one sync, and reports them. State that no response depends
// on is not worth a write and goes along with the next write, as raft allows: a commit index,
// unless it decides which members vote; term and vote, if there is no response.
func (w *logWriter) flush() error {
	w.batches, w.entries, w.data = w.batches[:0], w.entries[:0], w.data[:0]
	var responses []*raftpb.Message
	hasEntries := false
	for _, m := range w.queued {
		if m.Term != nil {
			w.state.Term, w.state.Vote, w.state.Commit = m.GetTerm(), m.GetVote(), m.GetCommit()
		}
		hasEntries = hasEntries || len(m.GetEntries()) > 0
		responses = append(responses, m.GetResponses()...)
		first := len(w.entries)
		for _, e := range m.GetEntries() {
			at := len(w.data)
			w.data = core.AppendEntryHead(w.data, e)
			w.entries = append(w.entries, wal.Entry{
				Index: e.GetIndex(), Head: w.data[at:len(w.data):len(w.data)], Data: e.GetData(),
			})
		}
		w.batches = append(w.batches, wal.Batch{Entries: w.entries[first:len(w.entries):len(w.entries)]})
	}
	voted := w.state.Term != w.written.Term || w.state.Vote != w.written.Vote
	if w.log != nil && (hasEntries || (voted && len(responses) > 0) || w.marked || (w.settle && w.state.Commit != w.written.Commit)) {
		if err := w.write(); err != nil {
			return err
		}
	}
	w.settle, w.marked = false, false
	// Only now: raft reads entries from its storage and takes them for durable.
	for _, m := range w.queued {
		if err := w.storage.Append(m.GetEntries()); err != nil {
			return err
		}
	}
	clear(w.queued)
	clear(w.entries) // otherwise the data stay in memory until the next append
	w.queued, w.queuedBytes = w.queued[:0], 0
	if len(responses) > 0 {
		w.done(responses, nil)
	}
	return nil
}

func (w *logWriter) write() error {
	at := len(w.data)
	w.data = w.state.Append(w.data)
	if len(w.batches) == 0 {
		w.batches = append(w.batches, wal.Batch{})
	}
	w.batches[0].State = w.data[at:len(w.data):len(w.data)]
	w.watch.begin()
	defer w.watch.end()
	return w.append(w.batches...)
}

// append appends batches, the first of which has the newest state.
func (w *logWriter) append(batches ...wal.Batch) error {
	if err := w.log.Append(batches...); err != nil {
		return err
	}
	w.written = w.state
	return nil
}

func (w *logWriter) begin(first core.LogState) error {
	w.state.Term, w.state.Vote, w.state.Commit = first.Term, first.Vote, first.Commit
	return w.append(wal.Batch{State: w.state.Append(nil), Reset: first.Commit})
}
