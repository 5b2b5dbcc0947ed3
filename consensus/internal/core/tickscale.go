package core

import (
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

const (
	// maxTickScale bounds how much raft's clock may be slowed down.
	maxTickScale = 4
	// tickScaleTicks is the number of ticks with a leader after which raft's clock speeds up again.
	tickScaleTicks = 100 * electionTicks
)

// tickScale slows raft's clock down. If a message takes longer than an election timeout, votes
// arrive after their election is over, and no election ever succeeds. Such late votes stretch all
// of raft's timeouts for a while. Members that do not answer at all do not: an election after a
// partition must not take longer.
type tickScale struct {
	factor int // our ticks per tick of raft; 0 means 1
	ticks  int // our ticks since raft's last tick
	steady int // ticks with a leader
}

// noteLateVote stretches raft's timeouts if m is a vote that arrived after its election.
func (c *Core) noteLateVote(m *raftpb.Message) {
	if m.GetType() == raftpb.MsgVoteResp && !m.GetReject() &&
		(c.role == raft.StatePreCandidate || c.role != raft.StateLeader && m.GetTerm() < c.raftTerm) {
		c.ticks.scale.factor = min(max(2*c.ticks.scale.factor, 2), maxTickScale)
		c.ticks.scale.steady = 0
	}
}

func (c *Core) tickRaft() {
	if c.start.past.proof != "" {
		return
	}
	s := &c.ticks.scale
	if s.steady++; c.leader == raft.None {
		s.steady = 0
	}
	if s.factor > 0 && s.steady >= tickScaleTicks {
		s.factor, s.steady = s.factor/2, 0
	}
	if s.ticks++; s.ticks >= s.factor {
		s.ticks = 0
		if !c.passive() && !c.holdsTick() { // a passive member would campaign
			c.raft.Tick()
		}
	}
}
