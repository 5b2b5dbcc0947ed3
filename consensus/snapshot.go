package consensus

// Snapshot is the state at one moment, and a description for WriteCheckpoint.
type Snapshot struct {
	Held  SavedState
	State Changes
}

// Snapshot delivers the state with everything that was committed anywhere before the call. The
// result does not change, and belongs to the caller; the node goes on. Nothing is applied while the
// snapshot is taken, for a time that grows with the state, but only pointers are copied.
//
// Like Read, Snapshot needs a leader, and a node that stops does not answer.
func (n *Node) Snapshot() <-chan Snapshot {
	got := make(chan Snapshot, 1) // the loop must not wait for a caller that gave up
	n.Read(func() { got <- Snapshot{savedStateOf(n.core.Meta()), n.cfg.StateMachine.CaptureAll()} })
	return got
}
