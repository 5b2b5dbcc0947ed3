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
	Since   time.Time // when one of the two changed
	Term    uint64    // of the last applied entry
	Applied uint64    // index of the last applied entry
	Fresh   bool      // without state: waits to form an ensemble or to be let in
	Voter   bool      // this member votes

	Voters, Learners []uint64     // as raft has them, which during a change is not what is asked for
	Peers            []PeerStatus // of the other members, where this one leads
}

// PeerStatus is what the leader knows of another member.
type PeerStatus struct {
	ID      uint64
	Active  bool   // heard from within the last election timeout
	Match   uint64 // has the log up to this index
	InStep  bool   // gets entries as they come; else it is being caught up
	Learner bool
}

// Status returns a recent view.
func (n *Node) Status() Status { return *n.status.Load() }

func (c *core) peerStatus() (peers []PeerStatus) {
	if c.role != raft.StateLeader {
		return nil
	}
	c.node.WithProgress(func(id uint64, _ raft.ProgressType, pr raftProgress) {
		if id != c.id {
			peers = append(peers, PeerStatus{
				ID: id, Active: pr.RecentActive, Match: pr.Match, InStep: pr.State == tracker.StateReplicate, Learner: pr.IsLearner,
			})
		}
	})
	return peers
}
