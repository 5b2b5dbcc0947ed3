package consensus

import (
	"context"
	"fmt"

	"github.com/gozkd/gozkd/consensus/internal/core"
)

// Snapshot returns the state with everything that was committed anywhere before the call, and a
// description for WriteCheckpoint. The result does not change, and belongs to the caller; the node
// goes on. Nothing is applied while the snapshot is taken, for a time that grows with the state,
// but only pointers are copied.
//
// Like Read, Snapshot needs a leader, and a node that stops does not answer: if ctx ends first, its
// error is returned.
func (n *Node) Snapshot(ctx context.Context) (SavedState, Changes, error) {
	type snapshot struct {
		meta  core.Meta
		state Changes
	}
	got := make(chan snapshot, 1) // the loop must not wait for a caller that gave up
	n.Read(func() { got <- snapshot{n.core.Meta(), n.cfg.StateMachine.CaptureAll()} })
	select {
	case s := <-got:
		return savedStateOf(s.meta), s.state, nil
	case <-ctx.Done():
		return SavedState{}, nil, fmt.Errorf("consensus: no snapshot yet: %w", ctx.Err())
	}
}
