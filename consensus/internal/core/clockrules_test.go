package core

import (
	"fmt"
	"slices"
	"testing"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// newFollower returns a voter of five that knows no leader, and has a log of one entry.
func newFollower(t *testing.T) *Core {
	t.Helper()
	w := newWorld(t, 1, 5)
	return w.members[2].core // with ids on both sides
}

// The reachable voters campaign one after the other, in order of their ids, if a quorum is
// reachable, and once per leader.
func TestClock_SchedulesCampaigns(t *testing.T) {
	for _, tc := range []struct {
		what      string
		connected []uint64
		do        func(k *Clock)
		want      int
	}{
		{"nobody", nil, nil, 0},
		{"a minority", []uint64{1}, nil, 0},
		{"the others are greater", []uint64{4, 5}, nil, 1},
		{"one is less", []uint64{1, 4}, nil, 4},
		{"all", []uint64{1, 2, 4, 5}, nil, 7},
		{"strangers do not count", []uint64{1, 8, 9}, nil, 0},
		{"it has campaigned", []uint64{4, 5}, func(k *Clock) { k.campaigned = true }, 0},
		{"it has no state", []uint64{4, 5}, func(k *Clock) { k.fresh = true }, 0},
		{"it is outdated", []uint64{4, 5}, func(k *Clock) { k.proof = "proof" }, 0},
		{"it is no voter", []uint64{4, 5}, func(k *Clock) { k.conf = &raftpb.ConfState{Voters: []uint64{1, 4, 5}, Learners: []uint64{3}} }, 0},
		{"there is a leader", []uint64{4, 5}, func(k *Clock) { k.leader = 4 }, 0},
		{"it is a candidate", []uint64{4, 5}, func(k *Clock) { k.role = raft.StateCandidate }, 0},
	} {
		k := newFollower(t).Clock
		for _, id := range tc.connected {
			k.connected[id] = connectionUp
		}
		if tc.do != nil {
			tc.do(k)
		}
		if k.campaignEarly(); k.campaignIn != tc.want {
			t.Errorf("%s: it campaigns in %d ticks, want %d", tc.what, k.campaignIn, tc.want)
		}
		if tc.want > 0 && !k.campaigned {
			t.Errorf("%s: it would campaign again", tc.what)
		}
	}
}

// A scheduled campaign begins when its time has come, unless there is a leader by then, or the log
// hangs.
func TestClock_Campaigns(t *testing.T) {
	for _, tc := range []struct {
		what string
		in   int
		do   func(c *Core)
		want raft.StateType
	}{
		{"none is scheduled", 0, func(*Core) {}, raft.StateFollower},
		{"its time has come", 1, func(*Core) {}, raft.StatePreCandidate},
		{"a tick before", 2, func(*Core) {}, raft.StateFollower},
		{"there is a leader", 1, func(c *Core) { c.leader = 4 }, raft.StateFollower},
		{"the log hangs", 1, func(c *Core) { c.LogStall.Set(true) }, raft.StateFollower},
	} {
		c := newFollower(t)
		c.Clock.campaignIn = tc.in
		tc.do(c)
		c.Clock.tickCampaign()
		if got := c.raft.BasicStatus().RaftState; got != tc.want || c.Clock.campaignIn != max(tc.in-1, 0) {
			t.Errorf("%s: it is a %v, and campaigns in %d ticks", tc.what, got, c.Clock.campaignIn)
		}
	}
}

// A leader ends what was scheduled; so does being outdated.
func TestClock_LeadershipChanged(t *testing.T) {
	for _, tc := range []struct {
		leader     uint64
		proof      string
		campaigned bool
		in         int
	}{{0, "", true, 4}, {2, "", false, 0}, {0, "proof", true, 0}, {2, "proof", false, 0}} {
		k := newFollower(t).Clock
		k.campaigned, k.campaignIn, k.leader, k.proof = true, 4, tc.leader, tc.proof
		if k.leadershipChanged(); k.campaigned != tc.campaigned || k.campaignIn != tc.in {
			t.Errorf("%+v: campaigned %v, in %d ticks", tc, k.campaigned, k.campaignIn)
		}
	}
}

// follow makes a member follow a leader of the present term.
func (c *Core) follow(t *testing.T, leader uint64) {
	t.Helper()
	term := max(c.raftTerm, 2)
	m := &raftpb.Message{Type: raftpb.MsgHeartbeat.Enum(), To: &c.id, From: &leader, Term: &term}
	if err := c.Step(&Message{To: c.id, From: leader, Raft: m}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Ready(0); err != nil || c.leader != leader {
		t.Fatal(c, err)
	}
}

// A leader whose port refuses connections is forgotten, and an election begins before the timeout.
func TestClock_LeaderGone(t *testing.T) {
	for _, tc := range []struct {
		peer uint64
		gone bool
		want int
	}{{4, true, 4}, {4, false, 0}, {5, true, 0}} {
		c := newFollower(t)
		c.follow(t, 4)
		for _, id := range []uint64{1, 4, 5} {
			c.connected[id] = connectionUp
		}
		c.Clock.campaigned = true
		if c.Unreachable(tc.peer, tc.gone); c.Clock.campaignIn != tc.want {
			t.Errorf("member %d, gone %v: it campaigns in %d ticks, want %d", tc.peer, tc.gone, c.Clock.campaignIn, tc.want)
		}
		if got := c.raft.BasicStatus().Lead; (got == raft.None) != (tc.want > 0) {
			t.Errorf("member %d, gone %v: the leader is %d", tc.peer, tc.gone, got)
		}
		if c.connected[tc.peer] != 0 {
			t.Error("it is still connected")
		}
	}
}

// A member that does not campaign doubts a leader that is silent: a learner after two election
// timeouts, a voter whose log hung after one.
func TestClock_DoubtsASilentLeader(t *testing.T) {
	for _, tc := range []struct {
		what  string
		do    func(c *Core)
		ticks int // after which it doubts; 0: never
	}{
		{"a voter", func(c *Core) {}, 0},
		{"a voter whose log hangs", func(c *Core) { c.LogStall.Set(true) }, ElectionTicks + 1},
		{"a voter whose log hung", func(c *Core) { c.Clock.passiveSince = true }, ElectionTicks + 1},
		{"a learner", func(c *Core) { c.conf = &raftpb.ConfState{Voters: []uint64{1, 4, 5}, Learners: []uint64{3}} }, 2*ElectionTicks + 1},
		{"a member without state", func(c *Core) { c.fresh = true; c.Clock.passiveSince = true }, 0},
	} {
		c := newFollower(t)
		c.follow(t, 4)
		tc.do(c)
		c.Clock.leaderSilence = 3
		hung := c.LogStall.stalled || c.Clock.passiveSince
		if c.Clock.heardLeader(); c.Clock.passiveSince || c.Clock.leaderSilence != 0 {
			t.Errorf("%s: the leader was heard, and it would doubt it", tc.what)
		}
		c.Clock.passiveSince = hung && !c.LogStall.stalled
		for tick := 1; tick <= 3*ElectionTicks; tick++ {
			before := c.raft.BasicStatus().Lead
			c.Clock.tickSilence()
			if now := c.raft.BasicStatus().Lead; now != before && tick != tc.ticks || now == before && tick == tc.ticks {
				t.Errorf("%s: after %d ticks the leader is %d", tc.what, tick, now)
			}
			if tick == tc.ticks && c.Clock.leaderSilence != 0 {
				t.Errorf("%s: the silence goes on after the doubt", tc.what)
			}
		}
	}
	c := newFollower(t)
	c.conf = &raftpb.ConfState{Voters: []uint64{1, 4, 5}, Learners: []uint64{3}}
	for range 3 * ElectionTicks { // without a leader there is nothing to doubt
		c.Clock.tickSilence()
	}
	if c.Clock.leaderSilence != 3*ElectionTicks {
		t.Errorf("%d ticks of silence", c.Clock.leaderSilence)
	}
}

// A vote that comes after its election slows raft's clock: twice at first, up to maxTickScale.
func TestTickScale_LateVotes(t *testing.T) {
	for _, tc := range []struct {
		what   string
		typ    raftpb.MessageType
		reject bool
		role   raft.StateType
		term   uint64
		late   bool
	}{
		{"a vote of an earlier term", raftpb.MsgVoteResp, false, raft.StateFollower, 4, true},
		{"a vote of this term", raftpb.MsgVoteResp, false, raft.StateFollower, 5, false},
		{"a candidate, a vote of an earlier term", raftpb.MsgVoteResp, false, raft.StateCandidate, 4, true},
		{"a leader", raftpb.MsgVoteResp, false, raft.StateLeader, 4, false},
		{"the next election has begun", raftpb.MsgVoteResp, false, raft.StatePreCandidate, 5, true},
		{"a refusal", raftpb.MsgVoteResp, true, raft.StateFollower, 4, false},
		{"a preliminary vote", raftpb.MsgPreVoteResp, false, raft.StateFollower, 4, false},
	} {
		for before, after := range map[int]int{0: 2, 1: 2, 2: 4, 4: maxTickScale} {
			k := newFollower(t).Clock
			k.role, k.raftTerm = tc.role, 5
			k.scale = tickScale{factor: before, steady: 7}
			k.noteLateVote(&raftpb.Message{Type: tc.typ.Enum(), Reject: &tc.reject, Term: &tc.term})
			want := tickScale{factor: before, steady: 7}
			if tc.late {
				want = tickScale{factor: after}
			}
			if k.scale != want {
				t.Errorf("%s: %+v, want %+v", tc.what, k.scale, want)
			}
			if k.Slowed() != (want.factor > 1) {
				t.Errorf("%s: slowed %v", tc.what, k.Slowed())
			}
		}
	}
}

// A slowed clock hands one in factor ticks to raft, and speeds up after tickScaleTicks with a
// leader. An outdated member's clock, and that of one whose log hangs, stands still.
func TestTickScale_Ticks(t *testing.T) {
	// ticks returns how many of n ticks raft gets: it campaigns when it has had its timeout.
	reaches := func(c *Core, n int) bool {
		for range n {
			c.Clock.tick()
		}
		return c.raft.BasicStatus().RaftState != raft.StateFollower
	}
	if !reaches(newFollower(t), 2*ElectionTicks) {
		t.Error("it does not campaign after two election timeouts")
	}
	slow := newFollower(t)
	slow.Clock.scale.factor = 4
	if reaches(slow, 4*ElectionTicks-1) {
		t.Error("slowed, it campaigns within an election timeout")
	}
	if !reaches(slow, 4*ElectionTicks+1) {
		t.Error("slowed, it does not campaign after two")
	}
	for what, do := range map[string]func(c *Core){
		"outdated": func(c *Core) { c.proof = "proof" }, "with a log that hangs": func(c *Core) { c.LogStall.Set(true) },
	} {
		c := newFollower(t)
		if do(c); reaches(c, 3*ElectionTicks) {
			t.Errorf("%s, it campaigns", what)
		}
	}
	for _, leader := range []uint64{0, 4} {
		c := newFollower(t)
		c.leader = leader
		c.Clock.scale.factor = 4
		for i, want := range []int{4, 2, 1, 0} {
			if leader == 0 {
				want = 4
			}
			if got := c.Clock.scale.factor; got != want {
				t.Errorf("leader %d: factor %d, want %d", leader, got, want)
			}
			for range tickScaleTicks - 1 {
				c.Clock.tick()
			}
			if got := c.Clock.scale.factor; got != want {
				t.Errorf("leader %d, step %d: factor %d a tick before the time", leader, i, got)
			}
			c.Clock.tick()
		}
		if n := c.Clock.scale.steady; leader == 0 && n != 0 {
			t.Errorf("%d ticks with a leader, and there is none", n)
		}
	}
}

// A sole voter leads at once; others wait for a quorum.
func TestClock_Begins(t *testing.T) {
	for _, tc := range []struct {
		voters []uint64
		want   raft.StateType
	}{{[]uint64{3}, raft.StatePreCandidate}, {[]uint64{4}, raft.StateFollower}, {[]uint64{1, 3}, raft.StateFollower}, {[]uint64{3, 4}, raft.StateFollower}} {
		c := newFollower(t)
		c.conf = &raftpb.ConfState{Voters: tc.voters}
		if err := c.startRaft(); err != nil {
			t.Fatal(err)
		}
		c.connected[1], c.connected[4] = connectionUp, connectionUp
		if err := c.Clock.begin(); err != nil || c.raft.BasicStatus().RaftState != tc.want {
			t.Errorf("voters %v: a %v, %v", tc.voters, c.raft.BasicStatus().RaftState, err)
		}
		if early := c.Clock.campaignIn > 0; early != (len(tc.voters) == 2) {
			t.Errorf("voters %v: it campaigns in %d ticks", tc.voters, c.Clock.campaignIn)
		}
	}
}

// Leadership goes to a voter that is there and has everything: the most up-to-date one of those
// with the fewest offers.
func TestLogStall_ChoosesTheNextLeader(t *testing.T) {
	for _, tc := range []struct {
		what   string
		do     func(l *member, a, b, learner uint64)
		offers map[string]int
		want   string
	}{
		{"both have all", nil, nil, "b"},
		{"one has more", func(l *member, a, b, _ uint64) { l.lags(b) }, nil, "a"},
		{"one has more than is applied", func(l *member, a, _, _ uint64) {
			l.propose()
			l.pump()
			l.hears(l.applied+1, a)
		}, nil, "a"},
		{"one was offered it", nil, map[string]int{"b": 1}, "a"},
		{"both were", nil, map[string]int{"a": 2, "b": 1}, "b"},
		{"one was offered it, and the other lags", func(l *member, a, b, _ uint64) { l.lags(a) }, map[string]int{"b": 1}, "b"},
		{"nobody is there", func(l *member, a, b, learner uint64) { l.forgets([]uint64{a, b, learner}) }, nil, ""},
		{"one is there", func(l *member, a, b, learner uint64) { l.forgets([]uint64{a, b, learner}); l.hears(0, a) }, nil, "a"},
	} {
		l, others := newLeader(t, 4, 1)
		names := map[uint64]string{0: "", others[0]: "a", others[1]: "b", others[2]: "learner", l.id: "itself"}
		for id, name := range names {
			if n := tc.offers[name]; n > 0 {
				l.core.LogStall.offers[id] = n
			}
		}
		if tc.do != nil {
			tc.do(l, others[0], others[1], others[2])
		}
		got := l.core.LogStall.transferLeadership(append(slices.Clone(others), l.id))
		if names[got] != tc.want || l.core.raft.BasicStatus().LeadTransferee != got {
			t.Errorf("%s: it goes to %q, want %q", tc.what, names[got], tc.want)
		}
	}
	l, others := newLeader(t, 4, 1)
	if got := l.core.LogStall.transferLeadership(others[2:]); got != 0 {
		t.Error("it goes to a learner")
	}
	if got := l.core.LogStall.transferLeadership(others[:1]); got != others[0] {
		t.Error("it does not go to the voter that was named")
	}
}

// lags makes a member lack the last entry: there is another one, which all others have.
func (m *member) lags(id uint64) {
	m.w.t.Helper()
	l := m.w.members[id-1]
	l.cut = true
	m.propose()
	m.pump()
	m.w.calm(func() bool { return !m.w.busy() })
	l.cut = false
}

// A leader whose log hangs offers its leadership to one voter after the other, one at a time.
func TestLogStall_Offers(t *testing.T) {
	l, others := newLeader(t, 3, 0)
	for l.id == 1 { // an offer to member 1 counts as any other
		l, others = newLeader(t, 3, 0)
	}
	s := l.core.LogStall
	if s.tick(); l.core.raft.BasicStatus().LeadTransferee != raft.None {
		t.Error("a leader whose log does not hang offers its leadership")
	}
	s.Set(true)
	var order []uint64
	for range 4 {
		s.tick()
		to := l.core.raft.BasicStatus().LeadTransferee
		if s.tick(); s.offers[to] != len(order)/2+1 {
			t.Errorf("%v: offered while an offer is under way", s.offers)
		}
		order = append(order, to)
		l.hears(0, others...)
		for range ElectionTicks { // raft withdraws the offer
			l.core.raft.Tick()
		}
		l.hears(0, others...)
	}
	if order[0] == order[1] || order[0] != order[2] || order[1] != order[3] {
		t.Errorf("offered to %v", order)
	}
	if s.Set(false); len(s.offers) > 0 || s.Stalled() {
		t.Error("the offers are not forgotten")
	}
	f := l.w.members[others[0]-1].core
	if f.LogStall.Set(true); !f.LogStall.passive() {
		t.Error("a follower whose log hangs is not passive")
	}
	f.LogStall.tick()
	if len(f.LogStall.offers) > 0 {
		t.Error("a follower offers leadership")
	}
	if s.Set(true); s.passive() {
		t.Error("a leader is passive")
	}
}

// A member whose log hangs drops what it could answer only from its log.
func TestLogStall_Drops(t *testing.T) {
	var dropped []string
	for typ := range raftpb.MessageType_name {
		if needsLog(&raftpb.Message{Type: raftpb.MessageType(typ).Enum()}) {
			dropped = append(dropped, raftpb.MessageType(typ).String())
		}
	}
	slices.Sort(dropped)
	if got := fmt.Sprint(dropped); got != "[MsgApp MsgPreVote MsgTimeoutNow MsgVote]" {
		t.Errorf("it drops %s", got)
	}
	c := newFollower(t)
	if c.LogStall.Set(true); c.votes(t, 9) {
		t.Error("a member whose log hangs votes")
	}
	hears := newFollower(t)
	hears.LogStall.Set(true)
	hears.follow(t, 4)
	if c.LogStall.Set(false); !c.votes(t, 9) {
		t.Error("a member whose log goes on does not vote")
	}
}
