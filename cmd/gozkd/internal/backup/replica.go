package backup

import (
	"fmt"
	"iter"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
)

// replica is the state machine of a member that does not run. It applies the entries of the log as
// package server does, but there are no clients to answer.
type replica struct {
	tree *datatree.Tree
	err  error // of an entry that can't be decoded; later entries are ignored
}

// Restore implements consensus.StateMachine.
func (r *replica) Restore(state iter.Seq2[[]byte, []byte]) (install func(), err error) {
	t, err := datatree.Restore(datatree.Options{}, state)
	if err != nil {
		return nil, err
	}
	return func() { r.tree = t }, nil
}

// Apply implements consensus.StateMachine. A request that can't be decoded was written by another
// version. Such a request must not be skipped: the same log would then lead to another state.
func (r *replica) Apply(batches []consensus.Batch) {
	if r.err != nil {
		return
	}
	for _, b := range batches {
		if b.NewTerm {
			r.tree.SetLastZxid(r.tree.LastZxid().NextEpoch())
		}
		for _, request := range b.Requests {
			decoded, err := datatree.DecodeRequest(request.Payload)
			if err != nil {
				r.err = fmt.Errorf("entry %d of the log: %w", b.Index, err)
				return
			}
			r.tree.Apply(datatree.Header{Zxid: r.tree.LastZxid().Next(), TimeMs: b.TimeMs}, &decoded)
		}
	}
}

// Capture implements consensus.StateMachine. It returns the whole state, because there was no
// earlier capture.
func (r *replica) Capture() consensus.Changes { return r.tree.CaptureAll() }

// CaptureAll implements consensus.StateMachine.
func (r *replica) CaptureAll() consensus.Changes { return r.tree.CaptureAll() }
