package consensus

import (
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/tracker"
)

// Status is a view of the node at one moment. Its slices are shared and not to be changed.
type Status struct {
	Leader  uint64    // 0: none is known
	Leading bool      // this member leads
	Since   time.Time // when one of the two changed, by the runtime's clock
	Term    uint64    // of the last applied entry
	Applied uint64    // index of the last applied entry
	Current bool      // a leader is known and its first entry is applied
	Fresh   bool      // without state: waits to form an ensemble or to be let in
	Voter   bool      // this member votes

	// Joining: where this one leads, members without state have asked to be let in, and nothing was done about it yet.
	Joining bool

	Voters, Learners []uint64     // as raft has them, which during a change is not what is asked for
	Peers            []PeerStatus // of the other members, where this one leads

	Counts Counts
}

// PeerStatus is what the leader knew of another member at its last tick.
type PeerStatus struct {
	ID     uint64
	Active bool   // heard from within the last two election timeouts
	Match  uint64 // has the log up to this index; 0: it was not heard yet how far it is
	Lag    uint64 // entries that were applied here and that it did not have
	// InStep: gets entries as they come, and lacks a few hundred at most of those that are applied here. Else it is being caught up,
	// by a checkpoint if Checkpoint is set, by the log if not.
	InStep, Checkpoint bool
	Learner            bool
}

// Status returns a recent view.
func (n *Node) Status() Status { return *n.status.Load() }

// Changed gets a value when another member leads, or begins or ceases to be current. It is for one reader.
func (n *Node) Changed() <-chan struct{} { return n.changed }

// Connected returns the other members that messages can be sent to now, sorted.
func (n *Node) Connected() (ids []uint64) {
	n.networkMu.Lock()
	network := n.network
	n.networkMu.Unlock()
	if network == nil {
		return nil
	}
	for _, p := range network.Status() {
		if p.Connected {
			ids = append(ids, p.ID)
		}
	}
	return ids
}

// lookAtPeers is called before each tick. Raft begins anew with RecentActive once in an election timeout, so a member counts as
// active for one more.
func (n *Node) lookAtPeers() {
	n.ticks++
	n.peers = n.core.peerStatus()
	if n.peers == nil {
		n.heard, n.inStep = nil, nil
		return
	}
	if n.heard == nil {
		n.heard = make(map[uint64]uint64)
		for i := range n.peers {
			n.heard[n.peers[i].ID] = n.ticks // a new leader gives them the time to answer
		}
	}
	for i := range n.peers {
		p := &n.peers[i]
		if p.Active {
			n.heard[p.ID] = n.ticks
		}
		p.Active = n.heard[p.ID] != 0 && n.ticks-n.heard[p.ID] <= electionTicks
	}
	n.countInStep()
}

// countInStep notes members that come into step by the log. Those that got a checkpoint were counted when it was sent.
func (n *Node) countInStep() {
	if n.inStep == nil {
		n.inStep = make(map[uint64]bool)
	}
	for i := range n.peers {
		p := &n.peers[i]
		switch step := p.Active && p.InStep && p.Match > 0; {
		case p.Checkpoint:
			n.inStep[p.ID] = true
		case step && !n.inStep[p.ID]:
			n.counted.CaughtUp++
			n.inStep[p.ID] = true
		case !p.Active:
			n.inStep[p.ID] = false
		}
	}
}

func (c *core) peerStatus() (peers []PeerStatus) {
	if c.role != raft.StateLeader {
		return nil
	}
	c.node.WithProgress(func(id uint64, _ raft.ProgressType, pr raftProgress) {
		if id != c.id {
			peers = append(peers, PeerStatus{
				ID: id, Active: pr.RecentActive, Match: pr.Match, Lag: c.applied - min(c.applied, pr.Match), Learner: pr.IsLearner,
				InStep:     pr.State == tracker.StateReplicate && pr.Match+caughtUp >= c.applied,
				Checkpoint: pr.State == tracker.StateSnapshot,
			})
		}
	})
	return peers
}
