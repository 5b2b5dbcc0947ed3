// Package replica applies the log of a member that does not run, and tells its transactions. It is
// for commands that read data directories, backups and archives.
package replica

import (
	"iter"
	"time"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
)

// Replica is a consensus.StateMachine that applies batches to a tree as package server does,
// without clients: the first batch of a term begins an epoch, and each request takes the next zxid.
type Replica struct {
	Tree *datatree.Tree // nil until Restore, unless it is set
	// Until is the last zxid to apply; 0: there is no limit.
	Until     proto.Zxid
	Term      uint64 // of the entries that are applied, for Txn
	Committed uint64 // the index up to which entries are known to be committed; 0: all of them
	Restored  func() // is called after Restore, before the first entry is applied; may be nil

	handOut func(*Txn) bool
	reached bool // a change beyond Until was left out, and nothing is applied after that
}

// Reached reports whether all changes up to Until were applied.
func (r *Replica) Reached() bool {
	return r.reached || r.Until != 0 && r.Tree != nil && r.Tree.LastZxid() == r.Until
}

// Restore implements consensus.StateMachine.
func (r *Replica) Restore(state iter.Seq2[[]byte, []byte]) (install func(), err error) {
	t, err := datatree.Restore(datatree.Options{}, state)
	if err != nil {
		return nil, err
	}
	return func() {
		if r.Tree = t; r.Restored != nil {
			r.Restored()
		}
	}, nil
}

// Digest reads the zxid and the digest that a checkpoint records, without the znodes.
type Digest struct {
	consensus.StateMachine // nothing is applied
	Zxid                   proto.Zxid
	Digest                 uint64
}

// Restore implements consensus.StateMachine.
func (d *Digest) Restore(state iter.Seq2[[]byte, []byte]) (install func(), err error) {
	d.Zxid, d.Digest, err = datatree.SavedDigest(state)
	return func() {}, err
}

// SetTerm implements archive.Replica.
func (d *Digest) SetTerm(uint64) {}

// Apply implements consensus.StateMachine.
func (r *Replica) Apply(batches []consensus.Batch) {
	identities := make(datatree.Identities)
	for i := range batches {
		b := &batches[i]
		if b.NewTerm && r.within(r.Tree.LastZxid().NextEpoch()) {
			r.Tree.SetLastZxid(r.Tree.LastZxid().NextEpoch())
		}
		for j := range b.Requests {
			zxid := r.Tree.LastZxid().Next()
			if !r.within(zxid) {
				return
			}
			request := datatree.CommittedRequest(b.Requests[j].Payload, identities)
			result, events := r.Tree.Apply(datatree.Header{Zxid: zxid, TimeMs: b.TimeMs}, &request)
			if r.handOut == nil {
				continue
			}
			t := r.Txn(b, &request)
			if t.setResult(&request, &result, events); !r.handOut(&t) {
				r.handOut = nil
			}
		}
	}
}

// SetTerm sets Term.
func (r *Replica) SetTerm(term uint64) { r.Term = term }

// HandOut makes r hand the transactions that it applies to f until f returns false. f may be nil.
func (r *Replica) HandOut(f func(*Txn) bool) { r.handOut = f }

// Txn returns a transaction of a batch, without its result.
func (r *Replica) Txn(b *consensus.Batch, request *datatree.Request) Txn {
	t := decodeTxn(request)
	t.Time, t.Index, t.Term = time.UnixMilli(b.TimeMs).UTC(), b.Index, r.Term
	t.Uncommitted = r.Committed > 0 && b.Index > r.Committed
	return t
}

// within reports whether a zxid is to be applied.
func (r *Replica) within(zxid proto.Zxid) bool {
	r.reached = r.reached || r.Until != 0 && zxid > r.Until
	return !r.reached
}

// Capture implements consensus.StateMachine: the whole state, as there was no earlier capture.
func (r *Replica) Capture() consensus.Changes { return r.Tree.CaptureAll() }

// CaptureAll implements consensus.StateMachine.
func (r *Replica) CaptureAll() consensus.Changes { return r.Tree.CaptureAll() }
