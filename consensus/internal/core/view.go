package core

import (
	"fmt"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/tracker"
)

// ClustersDiffer reports whether two numbers that identify ensembles are known and differ.
func ClustersDiffer(a, b uint64) bool { return a != 0 && b != 0 && a != b }

// Cluster returns the number that identifies the ensemble; 0: not known yet.
func (c *Core) Cluster() uint64 { return c.cluster }

// Incarnation returns the incarnation of this server's stream.
func (c *Core) Incarnation() uint64 { return c.own.incarnation }

// Pending returns the number of this server's requests that are not applied yet.
func (c *Core) Pending() int { return len(c.own.pending) }

// Proposed counts the requests that this member put into entries as the leader.
func (c *Core) Proposed() int64 { return c.proposer.proposed }

// Resent counts the requests of this member that were sent again.
func (c *Core) Resent() int64 { return c.own.resent }

// PeerStatus is the leader's knowledge of another member, as of its last tick.
type PeerStatus struct {
	ID     uint64
	Active bool   // heard from within the last two election timeouts, or the member has just come
	Match  uint64 // the member's log agrees up to this index; 0: not known yet
	Lag    uint64 // entries that are applied here and missing there
	// InStep: the member gets entries as they come, and lacks at most a few hundred applied
	// entries. Otherwise it is being caught up, by a checkpoint if Checkpoint is set, from the log
	// if not.
	InStep, Checkpoint bool
	Learner            bool
	Relayed            bool // a voter sends the member entries, in place of the leader
}

// Peers returns the status of the other members if this member leads, and nil otherwise.
func (c *Core) Peers() (peers []PeerStatus) {
	if c.role != raft.StateLeader {
		return nil
	}
	c.raft.WithProgress(func(id uint64, _ raft.ProgressType, pr raftProgress) {
		if id != c.id {
			peers = append(peers, PeerStatus{
				ID: id, Active: c.Membership.silentFor(id) <= ElectionTicks, Learner: pr.IsLearner,
				Match: pr.Match, Lag: c.applied - min(c.applied, pr.Match),
				InStep:     pr.State == tracker.StateReplicate && pr.Match+caughtUpEntries >= c.applied,
				Checkpoint: pr.State == tracker.StateSnapshot,
				Relayed:    c.Relays.Leased(id),
			})
		}
	})
	return peers
}

// Idle reports whether nothing waits or is under way here: no request, read, message, election,
// transfer or change of the membership, and whether raft's clock runs at full speed.
func (c *Core) Idle() bool {
	r := &c.reads
	return c.takesPart() && c.Clock.campaignIn == 0 && !c.Clock.Slowed() && !c.Membership.Reconfiguring() && !c.Retention.serving() &&
		len(c.own.pending)+len(c.proposer.incoming)+len(c.outbox)+len(r.waiting)+len(r.rounds)+len(r.confirmed) == 0 &&
		(c.role != raft.StateLeader || c.raft.BasicStatus().LeadTransferee == raft.None) // only a leader transfers
}

// quiet reports whether nothing but heartbeats is under way here.
func (c *Core) quiet() bool {
	return c.Current() && c.Idle() && !c.LogStall.stalled && c.Relays.idle()
}

// String describes the core in one line, for failure messages.
func (c *Core) String() string {
	return fmt.Sprintf("%v of term %d, commit %d, leader %d, applied %d, fresh %v, conf %v, %d pending",
		c.role, c.raftTerm, c.raft.BasicStatus().HardState.GetCommit(), c.leader, c.applied, c.fresh, c.conf, len(c.own.pending))
}
