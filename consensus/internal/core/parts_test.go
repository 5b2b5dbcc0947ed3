package core

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// Raft gets a message only if it is for this member, from the member that sent it, and if this
// member takes part.
func TestStep_Envelopes(t *testing.T) {
	for _, tc := range []struct {
		what               string
		to, inner, outside uint64
		do                 func(c *Core)
		want               bool
	}{
		{"as it should be", 3, 4, 4, nil, true},
		{"for another member", 2, 4, 4, nil, false},
		{"in the name of another member", 3, 4, 5, nil, false},
		{"without state", 3, 4, 4, func(c *Core) { c.fresh = true }, false},
		{"outdated", 3, 4, 4, func(c *Core) { c.proof = "proof" }, false},
	} {
		c := newFollower(t)
		c.connected[tc.outside] = connectionFresh
		if tc.do != nil {
			tc.do(c)
		}
		r := &raftpb.Message{Type: raftpb.MsgHeartbeat.Enum(), To: &tc.to, From: &tc.inner, Term: new(uint64(9))}
		if err := c.Step(&Message{To: c.id, From: tc.outside, Raft: r}); err != nil {
			t.Fatal(err)
		}
		if got := c.raft.BasicStatus().HardState.GetTerm() == 9; got != tc.want {
			t.Errorf("%s: raft gets it: %v", tc.what, got)
		}
		if heard := c.connected[tc.outside] == connectionUp; heard != tc.want {
			t.Errorf("%s: the member is heard: %v", tc.what, heard)
		}
	}
}

// A leader takes the requests of a member from that member only, and others take none.
func TestStep_Forwards(t *testing.T) {
	l, others := newLeader(t, 3, 0)
	f := l.w.members[others[0]-1]
	for _, tc := range []struct {
		m            *member
		server, from uint64
		want         int
	}{{l, 9, 9, 1}, {l, 9, 8, 0}, {f, 9, 9, 0}} {
		tc.m.core.proposer.incoming = nil
		g := &RequestRun{Server: tc.server, Incarnation: 1, First: 1, Payloads: [][]byte{{1}}}
		if err := tc.m.core.Step(&Message{From: tc.from, Forward: g}); err != nil {
			t.Fatal(err)
		}
		if n := len(tc.m.core.proposer.incoming); n != tc.want {
			t.Errorf("leads %v, requests of %d from %d: %d taken", tc.m == l, tc.server, tc.from, n)
		}
	}
}

// A member that does not vote tells a candidate how far the log is committed, and the candidate
// takes that over if the entry is in its log and it follows nobody.
func TestCommitNotice(t *testing.T) {
	l, others := newLeader(t, 4, 1)
	learner := l.w.members[others[2]-1].core
	voter := l.w.members[others[0]-1].core
	for _, c := range []*Core{learner, voter} {
		c.outbox = nil
		for i, typ := range []raftpb.MessageType{raftpb.MsgHeartbeatResp, raftpb.MsgPreVote} {
			if len(c.outbox) > 0 {
				t.Errorf("votes %v: a notice for message %d, which is no candidate's", c.Voter(), i)
			}
			r := &raftpb.Message{Type: typ.Enum(), To: &c.id, From: &others[1], Term: new(c.raftTerm + 1)}
			if err := c.Step(&Message{To: c.id, From: others[1], Raft: r}); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(c.outbox); (n == 1) != (c == learner) || n > 1 {
			t.Errorf("votes %v: it sends %d notices", c.Voter(), n)
		}
	}
	want := commitNotice{learner.applied, learner.appliedTerm}
	if got := learner.outbox[0]; got.To != others[1] || got.commit == nil || *got.commit != want {
		t.Errorf("it sends %+v, want %+v", got, want)
	}
	for _, tc := range []struct {
		what        string
		index, term uint64
		do          func(c *Core)
		want        uint64
	}{
		{"an entry of its log", 3, 2, nil, 3},
		{"an entry of another log", 3, 3, nil, 1},
		{"beyond its log", 5, 2, nil, 1},
		{"beyond its log, of no term", 5, 0, nil, 1},
		{"what it has applied", 1, 1, nil, 1},
		{"with a leader", 3, 2, func(c *Core) { c.leader = 4 }, 1},
		{"outdated", 3, 2, func(c *Core) { c.proof = "proof" }, 1},
		{"without state", 3, 2, func(c *Core) { c.fresh = true }, 1},
		{"no member", 3, 2, func(c *Core) { c.conf = &raftpb.ConfState{Voters: []uint64{2}} }, 1},
	} {
		w := newWorld(t, 1, 3)
		m := w.members[0]
		for i := range uint64(3) {
			m.disk = append(m.disk, &raftpb.Entry{Index: new(i + 2), Term: new(uint64(2))})
		}
		m.state.Term = 2
		m.start()
		m.pump()
		if tc.do != nil {
			tc.do(m.core)
		}
		if err := m.core.Step(&Message{To: 1, From: 2, commit: &commitNotice{tc.index, tc.term}}); err != nil {
			t.Fatal(err)
		}
		if got := m.core.raft.BasicStatus(); got.HardState.GetCommit() != tc.want || got.Lead != raft.None {
			t.Errorf("%s: %d is committed, the leader is %d", tc.what, got.HardState.GetCommit(), got.Lead)
		}
		if works := m.core.raft.HasReady(); works != (tc.want > 1) {
			t.Errorf("%s: raft gets the notice: %v", tc.what, works)
		}
	}
}

// Every part is told when the leader, the role or the term has changed.
func TestCore_TellsItsPartsOfANewLeader(t *testing.T) {
	for what, change := range map[string]func(c *Core){
		"leader": func(c *Core) { c.leader = 0 }, "role": func(c *Core) { c.role = raft.StateFollower }, "term": func(c *Core) { c.raftTerm = 1 },
	} {
		l, others := newLeader(t, 4, 1)
		c := l.core
		c.own.sent = 1
		c.own.pending = make([]pendingRequest, 1)
		c.proposer.heads[2], c.proposer.incoming, c.proposer.inFlight = StreamPosition{1, 1}, make([]RequestRun, 1), 2
		c.reads.rounds[7] = []func(){func() {}}
		c.LogStall.probes.last[others[0]] = probe{1, 1}
		c.Membership.idleTicks = 3
		c.Relays.leases[others[2]] = &relayLease{}
		c.Levels.proposed = true
		c.Retention.TransferStarted(others[2], 1)
		c.Clock.campaigned = true
		state := c.leader
		change(c)
		rd := raft.Ready{SoftState: &raft.SoftState{Lead: state, RaftState: raft.StateLeader}, HardState: &raftpb.HardState{Term: new(c.raft.BasicStatus().HardState.GetTerm())}}
		if err := c.collect(&Output{}, rd); err != nil {
			t.Fatal(err)
		}
		p := &c.proposer
		for part, reset := range map[string]bool{
			"own stream": c.own.sent == 0, "proposer": len(p.heads) == 0 && len(p.incoming) == 0 && p.inFlight == 0,
			"reads": len(c.reads.rounds) == 0 && len(c.reads.waiting) == 1, "log stall": len(c.LogStall.probes.last) == 0,
			"membership": c.Membership.idleTicks == 0, "relays": len(c.Relays.leases) == 0, "levels": !c.Levels.proposed,
			"retention": !c.Retention.serving(), "clock": !c.Clock.campaigned,
		} {
			if !reset {
				t.Errorf("another %s: %s is not told", what, part)
			}
		}
	}
}

// Each part's ticks are counted.
func TestCore_TicksItsParts(t *testing.T) {
	c := newFollower(t)
	c.own.pending, c.own.sent = make([]pendingRequest, 1), 1
	c.Clock.campaignIn = 5
	c.reads.rounds[1] = nil
	c.Retention.pinned[4] = pinnedIndex{1, 9}
	c.own.firstSeen, c.own.retryAfter = c.own.first, ElectionTicks
	c.Acks.held = &raftpb.Message{}
	c.Tick()
	if c.own.idle != 1 || c.Clock.campaignIn != 4 || c.reads.age != 1 || c.Retention.pinned[4].ticks != 8 ||
		c.Membership.idleTicks != 1 || c.Relays.source.age != 1 || c.LogStall.probes.ticks != 1 || c.Clock.leaderSilence != 1 || c.Acks.held != nil {
		t.Errorf("%+v", c)
	}
}

// A lost connection is told to each part that counts on it.
func TestCore_Unreachable(t *testing.T) {
	l, others := newLeader(t, 4, 1)
	c, learner := l.core, others[2]
	c.connected[learner] = connectionUp
	c.Levels.SetPeer(learner, LevelInfo{})
	clear(c.LogStall.probes.last)
	c.LogStall.probes.last[learner] = probe{1, 1}
	c.Relays.feeds = []*relayFeed{{learner: learner}, {learner: 9}}
	c.Acks.to, c.Acks.term = learner, 5
	c.Unreachable(learner, false)
	replicates := false
	c.raft.WithProgress(func(id uint64, _ raft.ProgressType, pr raftProgress) {
		replicates = replicates || id == learner && pr.State.String() == "StateReplicate"
	})
	_, level := c.Levels.peers[learner]
	if c.connected[learner] != 0 || level || len(c.LogStall.probes.last) > 0 || len(c.Relays.feeds) != 1 || c.Relays.feeds[0].learner != 9 || replicates || c.Acks.term != 0 {
		t.Errorf("connected %v, level %v, probes %v, %d feeds, raft sends entries ahead: %v, answers of term %d are left out",
			c.connected, level, c.LogStall.probes.last, len(c.Relays.feeds), replicates, c.Acks.term)
	}
	c.LogStall.probes.last[learner] = probe{1, 1}
	c.Acks.term = 5
	if c.Reachable(learner); c.connected[learner] != connectionUp || len(c.LogStall.probes.last) > 0 || c.Acks.term != 0 {
		t.Error("a new connection does not let the next probe and the next answer leave")
	}
}

// A new connection to the leader sends again what the previous one may have lost.
func TestCore_Reachable(t *testing.T) {
	for _, tc := range []struct {
		peer uint64
		role raft.StateType
		want bool
	}{{4, raft.StateFollower, true}, {5, raft.StateFollower, false}, {4, raft.StateLeader, false}} {
		c := newFollower(t)
		c.follow(t, 4)
		c.role, c.leader = tc.role, 4
		c.own.pending, c.own.sent = make([]pendingRequest, 1), 1
		c.reads.rounds[1] = []func(){func() {}}
		c.Reachable(tc.peer)
		if again := c.own.sent == 0 && len(c.reads.rounds) == 0; again != tc.want {
			t.Errorf("a connection to %d: sent again %v", tc.peer, again)
		}
	}
	c := newFollower(t)
	c.Clock.campaigned = false
	for _, id := range []uint64{4, 5} {
		c.Reachable(id)
	}
	if c.Clock.campaignIn != 1 {
		t.Error("a quorum is connected, and no campaign is scheduled")
	}
}

func TestCore_HandOver(t *testing.T) {
	for _, tc := range []struct {
		what string
		to   func(l *member, others []uint64) uint64
		want bool
	}{
		{"any voter", func(*member, []uint64) uint64 { return 0 }, true},
		{"a voter", func(_ *member, others []uint64) uint64 { return others[0] }, true},
		{"a learner", func(_ *member, others []uint64) uint64 { return others[2] }, false},
		{"a voter that is silent", func(l *member, others []uint64) uint64 {
			l.forgets(others)
			return others[0]
		}, false},
	} {
		l, others := newLeader(t, 4, 1)
		to := tc.to(l, others)
		if got := l.core.HandOver(to); got != tc.want {
			t.Errorf("%s: %v", tc.what, got)
		}
		transferee := l.core.raft.BasicStatus().LeadTransferee
		if (transferee != 0) != tc.want || to != 0 && tc.want && transferee != to {
			t.Errorf("%s: handed over to %d", tc.what, transferee)
		}
		l.core.role = raft.StateFollower
		if l.core.HandOver(to) {
			t.Errorf("%s: a follower hands over", tc.what)
		}
	}
}

func TestCore_Waiting(t *testing.T) {
	for what, do := range map[string]func(c *Core){
		"nothing": func(*Core) {}, "a request": func(c *Core) { c.own.pending = make([]pendingRequest, 1) },
		"a request of another": func(c *Core) { c.proposer.incoming = make([]RequestRun, 1) },
		"an entry":             func(c *Core) { c.proposer.inFlight = 1 }, "the first entry": func(c *Core) { c.appliedTerm = 0 },
	} {
		l, _ := newLeader(t, 1, 0)
		do(l.core)
		if got := l.core.Waiting(); got != (what != "nothing") {
			t.Errorf("%s: waiting %v", what, got)
		}
	}
}

// The state of a checkpoint replaces this member's, except its clock, which never goes back.
func TestCore_Installed(t *testing.T) {
	conf := &raftpb.ConfState{Voters: []uint64{1, 2}}
	for _, tc := range []struct {
		what             string
		position         StreamPosition // of this member's stream in the checkpoint
		incarnation      uint64         // after the installation
		timeMs, wantMs   int64
		lost, first, own uint64
	}{
		{"its requests are not in it", StreamPosition{}, 5, 900, 1000, 0, 1, 5},
		{"two of them are", StreamPosition{5, 2}, 5, 1100, 1100, 2, 3, 5},
		{"a later life was there", StreamPosition{8, 9}, 9, 900, 1000, 0, 1, 9},
		{"an earlier life was there", StreamPosition{4, 2}, 5, 900, 1000, 0, 1, 5},
	} {
		c := newFollower(t)
		c.own.incarnation, c.appliedMs = 5, 1000
		c.Retention.note(10)
		for i := range 3 {
			c.Propose([]byte{1}, i)
		}
		before := c.incarnations
		meta := &Meta{Index: 70, Term: 6, Cluster: 44, Level: 2, TimeMs: tc.timeMs, Conf: conf, Streams: Streams{3: tc.position}}
		lost := c.Installed(meta, tc.incarnation)
		if uint64(len(lost)) != tc.lost || c.own.first != tc.first || c.own.incarnation != tc.own || c.Pending() != 3-len(lost) {
			t.Errorf("%s: lost %v, the next is %d of incarnation %d", tc.what, lost, c.own.first, c.own.incarnation)
		}
		if c.applied != 70 || c.appliedTerm != 6 || c.cluster != 44 || c.conf != conf || c.Levels.Active() != 2 || c.appliedMs != tc.wantMs ||
			c.streams[3] != tc.position || c.incarnations != before+1 || c.Retention.bytes != 0 {
			t.Errorf("%s: %+v", tc.what, c)
		}
	}
	o := newOutdated(t, 5)
	o.proof = ""
	if o.Installed(&Meta{Index: 70, Term: 6, Conf: conf, Streams: Streams{1: {7, 1}}}, 9); o.Outdated() == "" {
		t.Error("a checkpoint with a request of a later start does not show that the member is outdated")
	}
}

// An append with entries that repeats the last one to a member is left out for repeatTicks while
// raft does not know how far that member's log goes.
func TestLogStall_Repeats(t *testing.T) {
	l, others := newLeader(t, 3, 0)
	s, to := l.core.LogStall, others[0]
	send := func(typ raftpb.MessageType, to, index uint64, entries int) bool {
		return s.repeats(&raftpb.Message{Type: typ.Enum(), To: &to, Index: &index, Entries: make([]*raftpb.Entry, entries)})
	}
	probes := func() { s.raft.ReportUnreachable(to) }
	for i, tc := range []struct {
		do    func()
		typ   raftpb.MessageType
		to    uint64
		index uint64
		n     int
		want  bool
	}{
		{nil, raftpb.MsgApp, to, 5, 1, false},
		{func() { s.raft.ReportUnreachable(others[1]) }, raftpb.MsgApp, to, 5, 1, false}, // raft knows how far it is
		{probes, raftpb.MsgApp, to, 5, 1, true},
		{nil, raftpb.MsgApp, to, 5, 0, false},
		{nil, raftpb.MsgHeartbeat, to, 5, 1, false},
		{nil, raftpb.MsgApp, to, 6, 1, false}, // another one
		{nil, raftpb.MsgApp, others[1], 6, 1, false},
		{func() { s.probes.ticks += repeatTicks - 1 }, raftpb.MsgApp, to, 6, 1, true},
		{func() { s.probes.ticks++ }, raftpb.MsgApp, to, 6, 1, false},
		{nil, raftpb.MsgApp, to, 6, 1, true},
		{func() { s.forget(others[1]) }, raftpb.MsgApp, to, 6, 1, true},
		{func() { s.forget(to) }, raftpb.MsgApp, to, 6, 1, false},
		{func() { s.forget(to); s.probes.ticks = 0 }, raftpb.MsgApp, to, 0, 1, false}, // index 0 is none that was sent
	} {
		if tc.do != nil {
			tc.do()
		}
		if got := send(tc.typ, tc.to, tc.index, tc.n); got != tc.want {
			t.Errorf("step %d: left out %v", i, got)
		}
	}
}

// What a leader hands out carries the time and the first own request of each batch.
func TestCore_HandsOut(t *testing.T) {
	l, _ := newLeader(t, 1, 0)
	var got []string
	for i, ms := range []int64{2_000_000, 1_000_000, 3_000_000} { // the clock goes back once
		l.w.nowMs = ms
		if i != 1 {
			l.propose()
		}
		g := &RequestRun{Server: 9, Incarnation: 1, First: uint64(i) + 1, Payloads: [][]byte{fmt.Append(nil, "9/1/", i+1)}}
		if err := l.core.Step(&Message{From: 9, Forward: g}); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			out, err := l.core.Ready(ms)
			if err != nil {
				t.Fatal(err)
			}
			for i := range out.Batches {
				got = append(got, fmt.Sprint(out.Batches[i].TimeMs, len(out.Batches[i].Requests), out.FirstOwn[i]))
			}
			l.queue = append(l.queue, out.Appends...)
			l.write(len(l.queue))
		}
		if l.core.proposer.inFlight != 0 {
			t.Errorf("%d entries are under way", l.core.proposer.inFlight)
		}
	}
	if want := []string{"2000000 2 1", "2000000 1 0", "3000000 2 2"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// What another member is told leaves with the next output, once.
func TestCore_SendsOnce(t *testing.T) {
	c := newFollower(t)
	c.send(Message{To: 4, join: &joinRequest{1, 1}})
	for _, want := range []int{1, 0} {
		out, err := c.Ready(0)
		if err != nil || len(out.Messages) != want {
			t.Errorf("%d messages, want %d, %v", len(out.Messages), want, err)
		}
	}
}

// A leader proposes no request before its first entry is applied: it does not know yet which
// requests are in the log.
func TestCore_NewLeadersDoNotPropose(t *testing.T) {
	w := newWorld(t, 1, 1)
	m := w.members[0]
	m.propose()
	for m.pump(); m.core.role != raft.StateLeader; m.pump() {
		m.write(len(m.queue))
	}
	if m.core.Current() || !m.core.HasProposals() {
		t.Errorf("%v: the request is proposed", m.core)
	}
	w.calm(func() bool { return m.answered == 1 })
}

// The first entry that can't be applied ends the turn. Others move the applied index, the time and
// the count of entries under way.
func TestCore_AppliesEntries(t *testing.T) {
	entry := func(typ raftpb.EntryType, term uint64, data []byte) *raftpb.Entry {
		return &raftpb.Entry{Index: new(uint64(50)), Term: &term, Type: &typ, Data: data}
	}
	batch := appendBatchHeader(nil, 2_000_000)
	for _, tc := range []struct {
		what            string
		e               *raftpb.Entry
		inFlight        int
		fails, newTerm  bool
		timeMs, afterIn int64
	}{
		{"a damaged change", entry(raftpb.EntryConfChangeV2, 2, []byte{0xff}), 1, true, false, 0, 1},
		{"a level of the future", entry(raftpb.EntryNormal, 2, appendLevelChange(nil, 1, 99)), 1, true, false, 0, 1},
		{"a damaged batch", entry(raftpb.EntryNormal, 2, []byte{9}), 1, true, false, 0, 1},
		{"a change", entry(raftpb.EntryConfChangeV2, 2, nil), 1, false, true, 1000, 1},
		{"a level", entry(raftpb.EntryNormal, 2, appendLevelChange(nil, 2_000_000, 2)), 1, false, true, 2_000_000, 1},
		{"an old level", entry(raftpb.EntryNormal, 2, appendLevelChange(nil, 1, 2)), 1, false, true, 1000, 1},
		{"a batch of an earlier term", entry(raftpb.EntryNormal, 1, batch), 1, false, false, 2_000_000, 1},
		{"a batch of this term", entry(raftpb.EntryNormal, 2, batch), 1, false, true, 2_000_000, 0},
		{"the last batch of this term", entry(raftpb.EntryNormal, 2, batch), 0, false, true, 2_000_000, 0},
		{"the first entry of a term", entry(raftpb.EntryNormal, 2, nil), 1, false, true, 1000, 1},
	} {
		if tc.what == "a change" {
			data, err := proto.Marshal(&raftpb.ConfChangeV2{Changes: []*raftpb.ConfChangeSingle{confChange(raftpb.ConfChangeAddLearnerNode, 9)}})
			if err != nil {
				t.Fatal(err)
			}
			tc.e.Data = data
		}
		c := newFollower(t)
		c.raftTerm, c.appliedTerm, c.appliedMs, c.proposer.inFlight = 2, 1, 1000, tc.inFlight
		c.Levels.checkDue = false
		var out Output
		err := c.handOut(&out, &raftpb.Message{Entries: []*raftpb.Entry{tc.e}})
		if (err != nil) != tc.fails || (len(out.Batches) == 0) != tc.fails || (c.applied == 50) == tc.fails {
			t.Errorf("%s: %v, %d batches, applied %d", tc.what, err, len(out.Batches), c.applied)
			continue
		}
		if int64(c.proposer.inFlight) != tc.afterIn {
			t.Errorf("%s: %d entries are under way", tc.what, c.proposer.inFlight)
		}
		if due := c.Levels.checkDue; !tc.fails && due != (tc.what == "a change" || strings.HasSuffix(tc.what, "level")) {
			t.Errorf("%s: the level is looked at: %v", tc.what, due)
		}
		if !tc.fails && (out.Batches[0].NewTerm != tc.newTerm || out.Batches[0].TimeMs != tc.timeMs || c.appliedMs != tc.timeMs) {
			t.Errorf("%s: %+v", tc.what, out.Batches[0])
		}
	}
}

// A target makes the leader look at the level, and a sole founder leads at once.
func TestCore_TargetAndFounder(t *testing.T) {
	c := newFollower(t)
	c.Levels.checkDue = false
	if c.SetTarget(Target{}); !c.Levels.checkDue {
		t.Error("a target does not make the leader look at the level")
	}
	f := newFresh(t)
	f.Admission.voters = []uint64{1}
	if err := f.Formed(); err != nil || f.raft.BasicStatus().RaftState == raft.StateFollower {
		t.Errorf("a sole founder is a %v, %v", f.raft.BasicStatus().RaftState, err)
	}
	o := newOutdated(t, 5)
	o.proof, o.own.sent = "", 1
	if o.Admission.becomeOutdated("proof"); o.own.sent != 0 {
		t.Error("the parts of an outdated member are not told")
	}
}
