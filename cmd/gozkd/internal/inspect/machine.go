package inspect

import (
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/replica"
	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
)

// machine is a state machine that hands out the transactions that it applies.
type machine struct {
	replica.Replica
	term      uint64 // of the entries that are applied
	committed uint64 // the index up to which entries are known to be committed; 0: all of them
}

// handOut makes m hand the transactions that it applies to f until f returns false. f may be nil.
func (m *machine) handOut(f func(*Txn) bool) {
	if f == nil {
		return
	}
	m.Applied = func(b *consensus.Batch, r *datatree.Request, res *datatree.Result, events []datatree.Event) {
		t := m.txn(b, r)
		if t.setResult(r, res, events); !f(&t) {
			m.Applied = nil
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
