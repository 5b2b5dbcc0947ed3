package core

import (
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// logStall holds whether this member's log hangs, and what the member has done about that.
//
// Heartbeats need no disk, so a leader whose log hangs would go on leading. The others would still
// commit what it sends, but the leader itself applies nothing, so it soon has maxInFlight entries
// under way and makes no more. All writes of the ensemble would wait for one disk.
type logStall struct {
	stalled bool
	offers  map[uint64]int // by voter: how often leadership was offered to it since the log hangs
	probes  probes         // of the others, whose logs may hang too
}

// SetLogStalled says whether the log hangs: for an election timeout some write or sync has been
// pending and none has ended. As long as the log hangs, a leader offers its leadership to one voter
// after the other until one takes over. Any other member
//
//   - does not campaign and does not accept leadership;
//   - drops entries and requests for its vote. It could answer neither before the log goes on, and
//     both would pile up. The leader sends the entries again.
//
// Call SetLogStalled before each Tick.
func (c *Core) SetLogStalled(stalled bool) {
	c.stall.stalled = stalled
	if !stalled {
		c.stall.offers = nil
	}
}

// LogStalled returns what SetLogStalled was told.
func (c *Core) LogStalled() bool { return c.stall.stalled }

// tickLogStall counts a tick, and offers leadership to a voter, unless an offer is under way: raft
// withdraws an offer that was not taken after an election timeout.
func (c *Core) tickLogStall() {
	c.stall.probes.ticks++
	if !c.stall.stalled || c.role != raft.StateLeader || c.raft.BasicStatus().LeadTransferee != raft.None {
		return
	}
	if to := c.transferLeadership(c.conf.GetVoters()); to != 0 {
		if c.stall.offers == nil {
			c.stall.offers = make(map[uint64]int)
		}
		c.stall.offers[to]++
	}
}

// passive reports whether this member must neither campaign nor vote because its log hangs.
func (c *Core) passive() bool { return c.stall.stalled && c.role != raft.StateLeader }

// needsLog reports whether a message is of no use to a member whose log hangs.
func needsLog(r *raftpb.Message) bool {
	switch r.GetType() {
	case raftpb.MsgApp, raftpb.MsgVote, raftpb.MsgPreVote, raftpb.MsgTimeoutNow:
		return true
	}
	return false
}
