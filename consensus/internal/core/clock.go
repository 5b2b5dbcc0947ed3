package core

import (
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

const (
	// maxTickScale bounds how much raft's clock may be slowed down.
	maxTickScale = 4
	// tickScaleTicks is the number of ticks with a leader after which raft's clock speeds up again.
	tickScaleTicks = 100 * ElectionTicks
)

// Clock decides when raft's clock ticks, is slowed down or rests, and when this member campaigns or
// doubts its leader before raft's clock says so. The other parts count ticks themselves. A member
// whose log hangs neither campaigns nor votes.
type Clock struct {
	*raftState
	stall      *LogStall
	membership *Membership
	quiet      func() bool // nothing but heartbeats is under way here
	scale      tickScale
	rest       rest

	campaigned    bool // an early campaign was scheduled since a leader was last known
	campaignIn    int  // ticks until this member campaigns; 0: when raft says so
	leaderSilence int  // ticks since the leader was heard from
	passiveSince  bool // this member was passive since the leader was heard from, so raft's clock stood still
}

func (k *Clock) leadershipChanged() {
	if k.leader != raft.None {
		k.campaigned = false
	}
	if k.leader != raft.None || k.proof != "" {
		k.campaignIn = 0
	}
}

func (k *Clock) heardLeader() { k.leaderSilence, k.passiveSince = 0, false }

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
func (k *Clock) noteLateVote(m *raftpb.Message) {
	if m.GetType() == raftpb.MsgVoteResp && !m.GetReject() &&
		(k.role == raft.StatePreCandidate || k.role != raft.StateLeader && m.GetTerm() < k.raftTerm) {
		k.scale.factor = min(max(2*k.scale.factor, 2), maxTickScale)
		k.scale.steady = 0
	}
}

func (k *Clock) tick() {
	if k.proof != "" {
		return
	}
	s := &k.scale
	if s.steady++; k.leader == raft.None {
		s.steady = 0
	}
	if s.steady >= tickScaleTicks {
		s.factor, s.steady = s.factor/2, 0
	}
	if s.ticks++; s.ticks >= s.factor {
		s.ticks = 0
		if !k.stall.passive() && !k.holdsTick() { // a passive member would campaign
			k.raft.Tick()
		}
	}
}

// Slowed reports whether raft's clock is slowed down, and with it elections.
func (k *Clock) Slowed() bool { return k.scale.factor > 1 }

func (k *Clock) tickCampaign() {
	if k.campaignIn == 0 {
		return
	}
	if k.campaignIn--; k.campaignIn == 0 && k.leader == raft.None && !k.stall.passive() {
		// An error would say that this member is no voter.
		_ = k.raft.Campaign()
	}
}

// leaderGone makes this member begin an election before the timeout.
func (k *Clock) leaderGone() {
	// An error would say that this member can't; then the election timeout decides.
	_ = k.raft.ForgetLeader()
	k.campaigned = false
	k.scheduleCampaign()
}

// begin is called when this member begins to take part in raft. A sole voter leads at once instead
// of after an election timeout; any other member may campaign early.
func (k *Clock) begin() error {
	if v := k.conf.GetVoters(); len(v) == 1 && v[0] == k.id {
		return k.raft.Campaign()
	}
	k.campaignEarly()
	return nil
}

// campaignEarly begins an election if there is no leader and a quorum can be reached. At the start
// that saves the election timeout.
func (k *Clock) campaignEarly() {
	if k.leader == raft.None && k.role == raft.StateFollower {
		k.scheduleCampaign()
	}
}

// scheduleCampaign lets the reachable voter with the lowest id campaign at once and the others a
// little later, in turn. If all campaigned at the same time, their votes would split. Whether the
// others vote for this member is up to raft.
func (k *Clock) scheduleCampaign() {
	if !k.takesPart() || k.campaigned || !k.Voter() {
		return
	}
	n, rank := 1, 0
	for _, id := range k.conf.GetVoters() {
		if k.connected[id] != 0 { // this member is not
			n++
			if id < k.id {
				rank++
			}
		}
	}
	if n > len(k.conf.GetVoters())/2 {
		k.campaigned, k.campaignIn = true, 1+3*rank
	}
}

// tickSilence makes a member that does not campaign doubt a silent leader. Raft lets only voters
// doubt, when they campaign: a learner, and the learner's clients, would follow a dead leader until
// the next election. A voter whose log hung would still believe in the dead leader when the log
// goes on, and refuse its vote, because raft's clock stood still meanwhile.
func (k *Clock) tickSilence() {
	k.leaderSilence++
	k.passiveSince = k.passiveSince || k.stall.passive()
	patience := 2 * ElectionTicks
	switch {
	case k.fresh || k.leader == raft.None || k.Voter() && !k.passiveSince:
		return
	case k.Voter():
		patience = ElectionTicks // the lease of the leader
	}
	if k.leaderSilence > patience {
		// An error would say that raft refuses, which depends on an option that is not set.
		_ = k.raft.ForgetLeader()
		k.leaderSilence = 0
	}
}
