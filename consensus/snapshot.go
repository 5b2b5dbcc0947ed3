package consensus

import (
	"context"
	"fmt"
)

// Snapshot returns the state with all that was committed anywhere when the call came, and what it is, for WriteCheckpoint. The node goes on: what
// is returned is of one moment and does not change, and belongs to the caller. It takes time that grows with the state, in which nothing is applied,
// but copies pointers only.
//
// Like Read it needs a leader, and a node that stops does not answer: the error is ctx's, if that ends first.
func (n *Node) Snapshot(ctx context.Context) (Held, Changes, error) {
	type taken struct {
		meta  checkpointMeta
		state Changes
	}
	got := make(chan taken, 1) // so that nobody waits for who gave up
	n.Read(func() { got <- taken{n.core.meta(), n.cfg.StateMachine.CaptureAll()} })
	select {
	case t := <-got:
		return heldBy(t.meta), t.state, nil
	case <-ctx.Done():
		return Held{}, nil, fmt.Errorf("consensus: no snapshot yet: %w", ctx.Err())
	}
}
