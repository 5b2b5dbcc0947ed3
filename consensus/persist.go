package consensus

import (
	"go.etcd.io/raft/v3/raftpb"

	"github.com/gozkd/gozkd/wal"
)

// persist gives appends to the log goroutine. In memory there is nothing to wait for, so the responses go back at once.
func (n *Node) persist(appends []*raftpb.Message) error {
	for _, m := range appends {
		if n.log != nil {
			n.toLog.put(logWork{append: m})
			continue
		}
		if err := n.storage.Append(m.GetEntries()); err != nil {
			return err
		}
		for _, r := range m.GetResponses() {
			if err := n.core.step(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// logWriter is the log goroutine's own state.
type logWriter struct {
	n         *Node
	state     logState
	batches   []wal.Batch
	entries   []wal.Entry
	data      []byte // entries' bytes and the state's
	responses []*raftpb.Message
	queued    []*raftpb.Message
}

// runLog owns the log: it writes everything that waits with one write and one sync, then reports back. It ends when stop
// is closed, or at the first error, which it reports.
func (n *Node) runLog(stop <-chan struct{}) {
	w := &logWriter{n: n, state: n.state}
	for {
		select {
		case <-n.toLog.wake:
		case <-stop:
			return
		}
		if err := w.work(n.toLog.take()); err != nil {
			n.inbox.put(input{err: err})
			return
		}
	}
}

func (w *logWriter) work(items []logWork) error {
	var compact uint64
	for _, item := range items {
		compact = max(compact, item.compact)
		if item.append != nil {
			w.queued = append(w.queued, item.append)
		}
	}
	if err := w.flush(); err != nil {
		return err
	}
	if compact > 0 {
		if err := w.n.log.Compact(compact); err != nil {
			return err
		}
		w.n.logBytes.Store(w.n.log.Size())
	}
	return nil
}

// flush writes the queued appends. A mere commit index with nothing that waits for it is not worth a write: it goes along
// with the next one, as raft allows.
func (w *logWriter) flush() error {
	w.batches, w.entries, w.data = w.batches[:0], w.entries[:0], w.data[:0]
	var responses []*raftpb.Message
	mustWrite := false
	for _, m := range w.queued {
		if m.Term != nil {
			w.state.Term, w.state.Vote, w.state.Commit = m.GetTerm(), m.GetVote(), m.GetCommit()
		}
		mustWrite = mustWrite || len(m.GetEntries()) > 0 || len(m.GetResponses()) > 0
		responses = append(responses, m.GetResponses()...)
		first := len(w.entries)
		for _, e := range m.GetEntries() {
			at := len(w.data)
			w.data = appendEntry(w.data, e)
			w.entries = append(w.entries, wal.Entry{Index: e.GetIndex(), Data: w.data[at:len(w.data):len(w.data)]})
		}
		w.batches = append(w.batches, wal.Batch{Entries: w.entries[first:len(w.entries):len(w.entries)]})
	}
	if !mustWrite {
		w.queued = w.queued[:0]
		return nil
	}
	at := len(w.data)
	w.data = w.state.append(w.data)
	w.batches[0].State = w.data[at:len(w.data):len(w.data)]
	if err := w.n.log.Append(w.batches...); err != nil {
		return err
	}
	w.n.logBytes.Store(w.n.log.Size())
	for _, m := range w.queued {
		if err := w.n.storage.Append(m.GetEntries()); err != nil {
			return err
		}
	}
	clear(w.queued)
	w.queued = w.queued[:0]
	w.n.inbox.put(input{persisted: responses})
	return nil
}
