package consensus

import (
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

const (
	// maxPace bounds how much slower raft's clock may go.
	maxPace = 4
	// paceTicks is after how many ticks with a leader raft's clock goes faster again.
	paceTicks = 100 * electionTicks
)

// pace is how fast raft's clock goes. Where a message takes longer than an election timeout, votes come when their election is over, and no
// election succeeds. Such votes make all of raft's timeouts longer, for a while. Members that don't answer at all don't: after a
// partition an election shall not take longer.
type pace struct {
	slower int // raft's tick is so many of ours; 0: one
	ticks  int
	steady int // ticks with a leader
}

// hear looks for votes that come late.
func (c *core) hear(m *raftpb.Message) {
	if m.GetType() == raftpb.MsgVoteResp && !m.GetReject() &&
		(c.role == raft.StatePreCandidate || c.role != raft.StateLeader && m.GetTerm() < c.raftTerm) {
		c.pace.slower = min(max(2*c.pace.slower, 2), maxPace)
		c.pace.steady = 0
	}
}

func (c *core) tickRaft() {
	p := &c.pace
	if p.steady++; c.leader == raft.None {
		p.steady = 0
	}
	if p.slower > 0 && p.steady >= paceTicks {
		p.slower, p.steady = p.slower/2, 0
	}
	if p.ticks++; p.ticks >= p.slower {
		p.ticks = 0
		c.node.Tick()
	}
}
