package consensus

import (
	"errors"
	"fmt"
	"iter"
	"sync"

	"go.etcd.io/raft/v3"
)

// Memory takes the place of a data directory for a node without one: what the node leaves there when it ends is what a disk
// would hold, and the next node with it goes on from there, with all that was acknowledged and voted. The zero value holds nothing.
// It lasts as long as the process, serves one node at a time, and must not be copied. Safe for concurrent use.
type Memory struct {
	mu    sync.Mutex
	taken bool
	left  *leftBehind // nil: nothing yet
}

// errMemoryInUse is what Open says of a Memory that another node has.
var errMemoryInUse = errors.New("consensus: the Memory is in use by another node that was not closed")

// leftBehind is a checkpoint and a log, at one moment between two batches.
type leftBehind struct {
	meta    checkpointMeta // without Conf: the node was fresh, and there is no state
	state   logState
	changes Changes
	storage *raft.MemoryStorage
}

// take makes the Memory this node's and restores the state machine from it. With what it returns in r, the node's log in memory
// is filled already.
func (m *Memory) take(n *Node, r *recovered) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.taken {
		return errMemoryInUse
	}
	if m.left != nil {
		if m.left.meta.Conf != nil {
			if m.left.meta.Member != n.cfg.ID {
				return fmt.Errorf("consensus: the Memory belongs to member %d, this is member %d", m.left.meta.Member, n.cfg.ID)
			}
			r.meta = m.left.meta
			if err := r.checkAlone(&n.cfg, "the Memory"); err != nil {
				return err
			}
			install, err := n.cfg.StateMachine.Restore(pairs(m.left.changes))
			if err != nil {
				return err
			}
			install()
			n.storage, r.filled = m.left.storage, true
		}
		r.state = m.left.state
		r.state.Commit = max(r.state.Commit, r.meta.Index)
		r.earlier = r.meta.Streams[n.cfg.ID].incarnation
	}
	m.taken = true
	return nil
}

// leave gives it back with what the node has. Nothing of the node runs any more.
func (m *Memory) leave(n *Node) {
	left := &leftBehind{state: n.writer.state}
	if !n.core.start.fresh {
		left.meta, left.changes, left.storage = n.core.meta(), n.cfg.StateMachine.CaptureAll(), n.storage
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left, m.taken = left, false
}

// giveBack leaves it as it was taken: the node did not run.
func (m *Memory) giveBack() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.taken = false
}

// pairs goes through the keys and values of a whole state.
func pairs(c Changes) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		stop := errors.New("enough")
		_ = c.Range(func(key, value []byte) error { // no other error than that
			if value != nil && !yield(key, value) {
				return stop
			}
			return nil
		})
	}
}
