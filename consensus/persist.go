package consensus

import (
	"errors"
	"sync"
	"sync/atomic"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/gozkd/gozkd/wal"
)

// persist gives appends to the log. In memory there is nothing to wait for, so the responses go back at once.
//
// alone says that there is nothing else to do meanwhile. Then, unless the log goroutine is busy, the write happens here: for
// a lone client two changes of goroutine, each with a wake-up, cost about as much as the sync is worth. What comes during
// the sync gathers in the inbox and becomes one entry. With other members the loop is never alone: they wait for its heartbeats, or for its
// answers to theirs.
func (n *Node) persist(appends []*raftpb.Message, alone bool) error {
	awaited := false
	for _, m := range appends {
		w := logWork{append: m}
		if m.GetSnapshot() != nil {
			// From here on no checkpoint of our own is begun: it would have the same file.
			w.install, n.prepared, n.installing = n.prepared, nil, true
			if w.install == nil || w.install.meta.Index != m.GetSnapshot().GetMetadata().GetIndex() {
				return errors.New("consensus: raft wants a checkpoint installed that is not there")
			}
			w.install.incarnation = n.core.incarnationBehind(w.install.meta)
		}
		n.toPersist = append(n.toPersist, w)
		awaited = awaited || len(m.GetEntries()) > 0 || len(m.GetResponses()) > 0
	}
	if n.core.conf != n.persistedConf {
		// Who votes follows from what is committed. Should all stop before the next append, those who come back would ask for votes by
		// the members of before, of which too few may be left.
		n.persistedConf = n.core.conf
		n.toPersist = append(n.toPersist, logWork{settle: true})
		awaited = true
	}
	if !awaited { // a commit index, for which nobody is woken: it goes along with the next append
		return nil
	}
	work := n.toPersist
	n.toPersist = n.toPersist[:0]
	defer clear(work)
	if n.log == nil || alone && n.writer.mu.TryLock() {
		if n.log == nil {
			n.writer.mu.Lock()
		}
		defer n.writer.mu.Unlock()
		if n.toLog.empty() { // else what is queued comes first
			return n.writer.work(work)
		}
	}
	n.toLog.put(work...)
	return nil
}

// maxAppendBytes is from how many bytes of entries on what waits for the log is not gathered any further. It bounds the
// memory that the log takes, and keeps far below what one append of the WAL may hold.
const maxAppendBytes = 4 << 20

// logWork is work for the log.
type logWork struct {
	append  *raftpb.Message
	install *received // the append's snapshot
	compact uint64
	settle  bool // the commit index is worth a write
}

// checkpointReplacer puts a complete checkpoint that came from another member in the place of ours, durably.
type checkpointReplacer interface{ replace(path string) error }

// logWriter writes the log, on the log goroutine or, if it is idle, on the loop's. In memory it only keeps raft's storage.
type logWriter struct {
	mu          sync.Mutex // held while work is taken from the queue and done; guards the log and all below
	log         *wal.Log   // nil: in memory
	storage     *raft.MemoryStorage
	checkpoints checkpointReplacer
	done        func(responses []*raftpb.Message, installed *received) // what is on disk
	size        *atomic.Int64                                          // of the log

	state   logState // newest
	written logState // in the log
	settle  bool     // what is committed is to be written

	queued      []*raftpb.Message
	queuedBytes int

	// Reused from one flush to the next.
	batches []wal.Batch
	entries []wal.Entry
	data    []byte // entries' bytes and the state's
}

// runLog writes everything that waits with one write and one sync, then reports back. It ends when stop is closed, or at
// the first error, which it reports.
func (n *Node) runLog(stop <-chan struct{}) {
	for {
		select {
		case <-n.toLog.wake:
		case <-stop:
			return
		}
		n.writer.mu.Lock()
		err := n.writer.work(n.toLog.take())
		n.writer.mu.Unlock()
		if err != nil {
			n.inbox.put(input{err: err})
			return
		}
	}
}

func (w *logWriter) work(items []logWork) error {
	var compact uint64
	for _, item := range items {
		compact = max(compact, item.compact)
		w.settle = w.settle || item.settle
		if item.append == nil {
			continue
		}
		if item.install != nil {
			if err := w.flush(); err != nil {
				return err
			}
			if err := w.install(item.append, item.install); err != nil {
				return err
			}
			continue
		}
		w.queued = append(w.queued, item.append)
		for _, e := range item.append.GetEntries() {
			w.queuedBytes += len(e.GetData())
		}
		if w.queuedBytes >= maxAppendBytes {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	if err := w.flush(); err != nil {
		return err
	}
	if compact > 0 && w.log != nil {
		if err := w.log.Compact(compact); err != nil {
			return err
		}
		w.size.Store(w.log.Size())
	}
	return nil
}

// install puts a checkpoint of another member in the place of checkpoint and log. A crash between the two steps leaves a
// checkpoint that is newer than the log, which recovery knows (joinLog).
func (w *logWriter) install(m *raftpb.Message, r *received) error {
	if m.Term != nil {
		w.state.Term, w.state.Vote, w.state.Commit = m.GetTerm(), m.GetVote(), m.GetCommit()
	}
	w.state.Commit = max(w.state.Commit, r.meta.Index)
	w.state.Incarnation = r.incarnation
	if w.log != nil {
		if err := w.checkpoints.replace(r.path); err != nil {
			return err
		}
		if err := w.log.Append(wal.Batch{State: w.state.append(nil), Reset: r.meta.Index}); err != nil {
			return err
		}
		w.written = w.state
		w.size.Store(w.log.Size())
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

// flush writes the queued appends with one sync, and reports back. What nobody waits for is not worth a write and goes along
// with the next one, as raft allows: a commit index unless who votes depends on it, term and vote if there is no response.
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
			w.data = appendEntry(w.data, e)
			w.entries = append(w.entries, wal.Entry{Index: e.GetIndex(), Data: w.data[at:len(w.data):len(w.data)]})
		}
		w.batches = append(w.batches, wal.Batch{Entries: w.entries[first:len(w.entries):len(w.entries)]})
	}
	voted := w.state.Term != w.written.Term || w.state.Vote != w.written.Vote
	if w.log != nil && (hasEntries || (voted && len(responses) > 0) || (w.settle && w.state.Commit != w.written.Commit)) {
		if err := w.write(); err != nil {
			return err
		}
	}
	w.settle = false
	for _, m := range w.queued {
		if err := w.storage.Append(m.GetEntries()); err != nil {
			return err
		}
	}
	clear(w.queued)
	w.queued, w.queuedBytes = w.queued[:0], 0
	if len(responses) > 0 {
		w.done(responses, nil)
	}
	return nil
}

// write appends w.batches, with the newest state, to the log.
func (w *logWriter) write() error {
	at := len(w.data)
	w.data = w.state.append(w.data)
	if len(w.batches) == 0 {
		w.batches = append(w.batches, wal.Batch{})
	}
	w.batches[0].State = w.data[at:len(w.data):len(w.data)]
	if err := w.log.Append(w.batches...); err != nil {
		return err
	}
	w.written = w.state
	w.size.Store(w.log.Size())
	return nil
}
