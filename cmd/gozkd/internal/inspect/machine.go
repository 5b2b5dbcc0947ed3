package inspect

import (
	"iter"
	"time"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
)

// machine is a state machine that hands out the transactions that it applies.
type machine struct {
	tree      *datatree.Tree
	emit      func(*Txn) bool // nil, or nil after it has returned false: nothing is handed out
	term      uint64          // of the entries that are applied
	committed uint64          // the index up to which entries are known to be committed; 0: all of them
}

// Restore implements consensus.StateMachine.
func (m *machine) Restore(state iter.Seq2[[]byte, []byte]) (install func(), err error) {
	t, err := datatree.Restore(datatree.Options{}, state)
	if err != nil {
		return nil, err
	}
	return func() { m.tree = t }, nil
}

// Apply implements consensus.StateMachine. It applies batches as package server does.
func (m *machine) Apply(batches []consensus.Batch) {
	for i := range batches {
		b := &batches[i]
		if b.NewTerm {
			m.tree.SetLastZxid(m.tree.LastZxid().NextEpoch())
		}
		for j := range b.Requests {
			r := datatree.CommittedRequest(b.Requests[j].Payload)
			res, events := m.tree.Apply(datatree.Header{Zxid: m.tree.LastZxid().Next(), TimeMs: b.TimeMs}, &r)
			if m.emit == nil {
				continue
			}
			t := m.txn(b, &r)
			if t.setResult(&r, &res, events); !m.emit(&t) {
				m.emit = nil
			}
		}
	}
}

// txn returns a transaction of a batch, without its result.
func (m *machine) txn(b *consensus.Batch, r *datatree.Request) Txn {
	t := decodeTxn(r)
	t.Time, t.Index, t.Term = time.UnixMilli(b.TimeMs).UTC(), b.Index, m.term
	t.Uncommitted = m.committed > 0 && b.Index > m.committed
	return t
}

// Capture implements consensus.StateMachine.
func (m *machine) Capture() consensus.Changes { return m.tree.CaptureAll() }

// CaptureAll implements consensus.StateMachine.
func (m *machine) CaptureAll() consensus.Changes { return m.tree.CaptureAll() }

// walk calls f for the znodes of a tree.
func walk(t *datatree.Tree, f func(*datatree.ZnodeInfo) bool) {
	t.Walk("/", func(z datatree.ZnodeInfo) bool { return f(&z) })
}

// sessions calls f for the sessions of a tree.
func sessions(t *datatree.Tree, f func(datatree.SessionInfo) bool) {
	for info := range t.Sessions() {
		if !f(info) {
			return
		}
	}
}
