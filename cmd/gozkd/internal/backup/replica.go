package backup

import (
	"iter"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
)

// replica is the state machine of a member that does not run. It applies the entries of the log as
// package server does, but there are no clients to answer.
type replica struct{ tree *datatree.Tree }

// Restore implements consensus.StateMachine.
func (r *replica) Restore(state iter.Seq2[[]byte, []byte]) (install func(), err error) {
	t, err := datatree.Restore(datatree.Options{}, state)
	if err != nil {
		return nil, err
	}
	return func() { r.tree = t }, nil
}

// Apply implements consensus.StateMachine.
func (r *replica) Apply(batches []consensus.Batch) {
	for _, b := range batches {
		if b.NewTerm {
			r.tree.SetLastZxid(r.tree.LastZxid().NextEpoch())
		}
		for _, request := range b.Requests {
			decoded := datatree.CommittedRequest(request.Payload)
			r.tree.Apply(datatree.Header{Zxid: r.tree.LastZxid().Next(), TimeMs: b.TimeMs}, &decoded)
		}
	}
}

// Capture implements consensus.StateMachine. It returns the whole state, because there was no
// earlier capture.
func (r *replica) Capture() consensus.Changes { return r.tree.CaptureAll() }

// CaptureAll implements consensus.StateMachine.
func (r *replica) CaptureAll() consensus.Changes { return r.tree.CaptureAll() }
