package backup

import (
	"fmt"
	"iter"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
)

// replica is the state machine of a member that doesn't run: it applies what the log holds, as package server would, and nobody waits for answers.
type replica struct{ tree *datatree.Tree }

// Restore implements consensus.StateMachine.
func (r *replica) Restore(state iter.Seq2[[]byte, []byte]) (install func(), err error) {
	t, err := datatree.Restore(datatree.Options{}, state)
	if err != nil {
		return nil, err
	}
	return func() { r.tree = t }, nil
}

// Apply implements consensus.StateMachine. A request of the log that can't be decoded was written by another version: going on without it would
// make another state of the same log.
func (r *replica) Apply(batches []consensus.Batch) {
	for _, b := range batches {
		if b.NewTerm {
			r.tree.SetLastZxid(r.tree.LastZxid().NextEpoch())
		}
		for _, request := range b.Requests {
			decoded, err := datatree.DecodeRequest(request.Payload)
			if err != nil {
				panic(unreadable{fmt.Errorf("entry %d of the log: %w", b.Index, err)})
			}
			r.tree.Apply(datatree.Header{Zxid: r.tree.LastZxid().Next(), TimeMs: b.TimeMs}, &decoded)
		}
	}
}

// unreadable is what Apply panics with, for read to recover.
type unreadable struct{ error }

// Capture implements consensus.StateMachine: the whole state, for nothing was captured before.
func (r *replica) Capture() consensus.Changes { return r.tree.CaptureAll() }

// CaptureAll implements consensus.StateMachine.
func (r *replica) CaptureAll() consensus.Changes { return r.tree.CaptureAll() }
