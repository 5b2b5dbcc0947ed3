package core

import (
	"fmt"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
)

// ClustersDiffer reports whether two numbers that identify ensembles are known and differ.
func ClustersDiffer(a, b uint64) bool { return a != 0 && b != 0 && a != b }

// ID returns this member's number.
func (c *Core) ID() uint64 { return c.id }

// Leader returns the leader as raft sees it; 0: none.
func (c *Core) Leader() uint64 { return c.leader }

// Leads reports whether this member leads.
func (c *Core) Leads() bool { return c.role == raft.StateLeader }

// RaftTerm returns raft's term.
func (c *Core) RaftTerm() uint64 { return c.raftTerm }

// Applied returns the index of the last entry that was handed out.
func (c *Core) Applied() uint64 { return c.applied }

// AppliedTerm returns the term of the last entry that was handed out.
func (c *Core) AppliedTerm() uint64 { return c.appliedTerm }

// Conf returns raft's membership. A change replaces the result, and never modifies it.
func (c *Core) Conf() *raftpb.ConfState { return c.conf }

// Cluster returns the number that identifies the ensemble; 0: not known yet.
func (c *Core) Cluster() uint64 { return c.cluster }

// Fresh reports whether this member has no state.
func (c *Core) Fresh() bool { return c.start.fresh }

// Admitted reports whether this member came without state and was let in by a leader.
func (c *Core) Admitted() bool { return c.start.minTerm != 0 }

// Voter reports whether this member votes.
func (c *Core) Voter() bool { return c.isVoter(c.id) }

// Current reports whether a leader is known and its first entry is applied.
func (c *Core) Current() bool { return c.leader != raft.None && c.appliedTerm == c.raftTerm }

// Incarnation returns the incarnation of this server's stream.
func (c *Core) Incarnation() uint64 { return c.own.incarnation }

// Pending returns the number of this server's requests that are not applied yet.
func (c *Core) Pending() int { return len(c.own.pending) }

// Proposed counts the requests that this member put into entries as the leader.
func (c *Core) Proposed() int64 { return c.proposer.proposed }

// FirstIndex returns the index of the first entry in memory.
func (c *Core) FirstIndex() (uint64, error) { return c.storage.FirstIndex() }

// Resent counts the requests of this member that were sent again.
func (c *Core) Resent() int64 { return c.own.resent }

// PeerStatus is the leader's knowledge of another member, as of its last tick.
type PeerStatus struct {
	ID     uint64
	Active bool   // heard from within the last two election timeouts
	Match  uint64 // the member's log agrees up to this index; 0: not known yet
	Lag    uint64 // entries that are applied here and missing there
	// InStep: the member gets entries as they come, and lacks at most a few hundred applied
	// entries. Otherwise it is being caught up, by a checkpoint if Checkpoint is set, from the log
	// if not.
	InStep, Checkpoint bool
	Learner            bool
	Relayed            bool // a voter sends the member entries, in place of the leader
}

// Peers returns the status of the other members if this member leads, and nil otherwise. Active
// means that raft has heard from the member since its last check.
func (c *Core) Peers() (peers []PeerStatus) {
	if c.role != raft.StateLeader {
		return nil
	}
	c.raft.WithProgress(func(id uint64, _ raft.ProgressType, pr raftProgress) {
		if id != c.id {
			peers = append(peers, PeerStatus{
				ID: id, Active: pr.RecentActive, Match: pr.Match, Lag: c.applied - min(c.applied, pr.Match), Learner: pr.IsLearner,
				InStep:     pr.State == tracker.StateReplicate && pr.Match+caughtUpEntries >= c.applied,
				Checkpoint: pr.State == tracker.StateSnapshot,
				Relayed:    c.Leased(id),
			})
		}
	})
	return peers
}

// Reconfiguring reports whether a change of the membership is under way here, or requested by a
// member without state.
func (c *Core) Reconfiguring() bool {
	return len(c.membership.joinNonces) > 0 || c.membership.changeTicks > 0
}

// Slowed reports whether raft's clock is slowed down, and with it elections.
func (c *Core) Slowed() bool { return c.ticks.scale.factor > 1 }

// Idle reports whether nothing waits or is under way here: no request, read, message, election,
// transfer or change of the membership, and whether raft's clock runs at full speed.
func (c *Core) Idle() bool {
	r := &c.reads
	return c.takesPart() && c.start.campaignIn == 0 && !c.Slowed() && !c.Reconfiguring() && len(c.retention.pinned) == 0 &&
		len(c.own.pending)+len(c.proposer.incoming)+len(c.wire.outbox)+len(r.waiting)+len(r.rounds)+len(r.confirmed) == 0 &&
		(c.role != raft.StateLeader || c.raft.BasicStatus().LeadTransferee == raft.None) // only a leader transfers
}

// String describes the core in one line, for failure messages.
func (c *Core) String() string {
	return fmt.Sprintf("%v of term %d, commit %d, leader %d, applied %d, fresh %v, conf %v, %d pending",
		c.role, c.raftTerm, c.raft.BasicStatus().HardState.GetCommit(), c.leader, c.applied, c.start.fresh, c.conf, len(c.own.pending))
}
