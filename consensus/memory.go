package consensus

import (
	"errors"
	"fmt"
	"sync"

	"go.etcd.io/raft/v3"

	"github.com/gozkd/gozkd/consensus/internal/core"
	"github.com/gozkd/gozkd/internal/memberid"
)

// Memory takes the place of the data directory for a node in memory. A node that ends leaves its
// state there, and the next node with the Memory continues from it, with everything that was
// acknowledged and voted. The zero value is empty. A Memory lasts as long as the process, serves
// one node at a time, and must not be copied. It is safe for concurrent use.
type Memory struct {
	mu    sync.Mutex
	inUse bool
	saved *memoryState // nil: empty
}

var errMemoryInUse = errors.New("consensus: the Memory is in use by another node that was not closed")

// memoryState is a checkpoint and a log, of one moment between two batches.
type memoryState struct {
	meta    core.Meta // without Conf: the node was fresh, and there is no state
	state   core.LogState
	changes Changes
	storage *raft.MemoryStorage
}

// take assigns the Memory to a node, restores the node's state machine, and sets its raft storage,
// which is then filled already.
func (m *Memory) take(n *Node, r *recovered) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.inUse {
		return errMemoryInUse
	}
	if m.saved != nil {
		if m.saved.meta.Conf != nil {
			if m.saved.meta.Member != n.cfg.ID {
				return fmt.Errorf("consensus: the Memory belongs to member %d, this is member %d",
					memberid.Number(m.saved.meta.Member), memberid.Number(n.cfg.ID))
			}
			r.meta = m.saved.meta
			if err := r.checkAlone(n.cfg, "the Memory"); err != nil {
				return err
			}
			install, err := restoreFrom(m.saved.changes.Range, n.cfg.StateMachine)
			if err != nil {
				return err
			}
			install()
			n.log.writer.storage, r.filled = m.saved.storage, true
		}
		r.state = m.saved.state
		r.state.Commit = max(r.state.Commit, r.meta.Index)
		r.earlier = r.meta.Streams[n.cfg.ID].Incarnation
	}
	m.inUse = true
	return nil
}

// leave saves the state of a node, no part of which runs any more, and makes the Memory available.
func (m *Memory) leave(n *Node) {
	saved := &memoryState{state: n.log.writer.state}
	if !n.core.Fresh() {
		saved.meta, saved.changes, saved.storage = n.core.Meta(), n.cfg.StateMachine.CaptureAll(), n.log.writer.storage
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.saved, m.inUse = saved, false
}

// giveBack makes the Memory available unchanged: the node did not run.
func (m *Memory) giveBack() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.inUse = false
}
