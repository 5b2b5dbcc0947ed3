package core

import (
	"slices"
	"testing"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// newLeader returns a member that leads n members, of which the last do not vote, and the others.
func newLeader(t *testing.T, n, learners int) (l *member, others []uint64) {
	w := newWorldWith(t, 1, n, learners)
	w.calm(func() bool { l = w.leader(); return l != nil && l.core.Current() && w.equal() })
	for _, m := range w.members {
		if m != l {
			others = append(others, m.id)
		}
	}
	return l, others
}

// hears gives a leader a message of raft from each of the members: that they have the log up to
// index or, if index is 0, an answer to a heartbeat.
func (m *member) hears(index uint64, from ...uint64) {
	m.w.t.Helper()
	for _, id := range from {
		r := &raftpb.Message{Type: raftpb.MsgHeartbeatResp.Enum(), To: &m.id, From: &id, Term: &m.core.raftTerm}
		if index > 0 {
			r.Type, r.Index = raftpb.MsgAppResp.Enum(), &index
		}
		if err := m.core.Step(&Message{To: m.id, From: id, Raft: r}); err != nil {
			m.w.t.Fatal(err)
		}
	}
}

// forgets lets the election timeout of a leader's raft end: raft counts nobody as heard.
func (m *member) forgets(others []uint64) {
	m.hears(0, others...)
	for range ElectionTicks {
		m.core.raft.Tick()
	}
}

// silence lets ticks pass for the membership of a leader.
func (m *member) silence(ticks int) {
	for range ticks {
		m.core.Membership.tick()
	}
}

// A member is let in again only if raft has not heard from it for an election timeout, and has
// heard from a quorum of the other voters.
func TestMembership_LetInAgain(t *testing.T) {
	l, others := newLeader(t, 6, 1)
	id, b, c, d, learner := others[0], others[1], others[2], others[3], others[4]
	m := l.core.Membership
	for _, tc := range []struct {
		heard []uint64
		ticks int
		want  bool
	}{
		{nil, ElectionTicks, false},
		{[]uint64{b}, ElectionTicks, false},
		{[]uint64{b, learner}, ElectionTicks, false},
		{[]uint64{b, c}, ElectionTicks - 1, false},
		{[]uint64{b, c}, ElectionTicks, true},
		{[]uint64{b, c, d, learner}, ElectionTicks, true},
		{[]uint64{id, b, c, d}, ElectionTicks, false},
	} {
		l.hears(0, id)
		l.silence(1)
		l.forgets(others)
		l.hears(0, tc.heard...)
		l.silence(tc.ticks)
		m.noteJoin(id, 77)
		if cc := m.readmit(); (cc != nil) != tc.want {
			t.Errorf("%v heard, %d ticks of silence: %v, want %v", tc.heard, tc.ticks, cc, tc.want)
		}
	}
	if m.leadershipChanged(); m.silentFor(id) != 0 {
		t.Error("a new leader counts the silence before its leadership")
	}
}

// A learner that shall vote becomes a voter when it follows, lacks few entries, and is there.
func TestMembership_Promotes(t *testing.T) {
	l, others := newLeader(t, 4, 1)
	learner := others[2]
	for range 2 * caughtUpEntries {
		l.propose()
		l.pump()
		l.w.calm(func() bool { return !l.w.busy() })
	}
	all := slices.Concat(others, []uint64{l.id})
	m := l.core.Membership
	enough := l.applied - caughtUpEntries
	for _, tc := range []struct {
		what string
		do   func()
		want bool
	}{
		{"has all", func() { l.hears(l.applied, learner) }, true},
		{"was silent", func() { l.forgets(others); l.hears(0, others[:2]...); l.silence(ElectionTicks) }, false},
		{"was heard again", func() { l.hears(0, learner); l.silence(1) }, true},
		{"can't be reached", func() { l.core.raft.ReportUnreachable(learner) }, false},
		{"follows again", func() { l.hears(l.applied, learner) }, true},
		{"was let in again", func() { l.readmits(learner) }, false},
		{"was heard, without the log", func() { l.hears(0, learner); l.silence(1) }, false},
		{"lacks too many entries", func() { l.hears(enough-1, learner) }, false},
		{"lacks few entries", func() { l.hears(enough, learner) }, true},
	} {
		tc.do()
		target := Target{Voters: all}
		ready, isAll, quorum := m.readyVoters(target)
		if promoted := len(m.difference(target, ready, isAll).GetChanges()) > 0; promoted != tc.want || isAll != tc.want || !quorum {
			t.Errorf("it %s: promoted %v, all are ready %v, a quorum is %v", tc.what, promoted, isAll, quorum)
		}
	}
}

// readmits applies the two changes by which a leader lets a member in again.
func (m *member) readmits(id uint64) {
	m.w.t.Helper()
	for _, typ := range []raftpb.ConfChangeType{raftpb.ConfChangeRemoveNode, raftpb.ConfChangeAddLearnerNode} {
		data, err := proto.Marshal(&raftpb.ConfChangeV2{Changes: []*raftpb.ConfChangeSingle{confChange(typ, id)}})
		if err == nil {
			err = m.core.Membership.apply(&raftpb.Entry{Data: data})
		}
		if err != nil {
			m.w.t.Fatal(err)
		}
	}
}

// While a client waits, a quorum of the new voters decides for all of them only when the others
// have made no progress for patienceTicks, and none is sent a checkpoint.
func TestMembership_Patience(t *testing.T) {
	l, others := newLeader(t, 4, 1)
	learner := others[2]
	m := l.core.Membership
	m.setTarget(Target{Serial: 7, Voters: slices.Concat(others, []uint64{l.id})})
	l.readmits(learner)
	step := func(what string, want bool) {
		t.Helper()
		m.checkDue = true
		if err := m.reconcile(&Output{}); err != nil {
			t.Fatal(err)
		}
		if decided := m.changeTicks > 0; decided != want {
			t.Errorf("%s: decided %v", what, decided)
		}
	}
	tick := func(n int) {
		for range n {
			l.hears(0, others...)
			l.silence(1)
		}
	}
	tick(patienceTicks - 1)
	step("a tick before", false)
	l.core.Retention.TransferStarted(learner, l.applied)
	tick(1)
	step("while a checkpoint is sent", false)
	l.core.Retention.TransferEnded(learner, false)
	tick(patienceTicks - 1)
	step("a tick before, since the checkpoint", false)
	tick(1)
	step("after the time", true)
}

// A learner outside the target is removed when it was silent for more than patienceTicks.
func TestMembership_RemovesTheSilent(t *testing.T) {
	l, others := newLeader(t, 4, 1)
	learner := others[2]
	m := l.core.Membership
	target := Target{Voters: slices.Concat(others[:2], []uint64{l.id})}
	for i, tc := range []struct {
		do   func()
		want bool
	}{
		{func() { l.forgets(others); l.silence(patienceTicks) }, false},
		{func() { l.silence(1) }, true},
		{func() { l.hears(0, learner); l.silence(1) }, false},
		{func() { l.forgets(others); l.silence(patienceTicks) }, false},
		{func() { m.leadershipChanged(); l.silence(patienceTicks) }, false},
		{func() { l.silence(1) }, true},
	} {
		tc.do()
		cc := m.difference(target, nil, false)
		if removed := len(cc.GetChanges()) > 0; removed != tc.want {
			t.Errorf("step %d, silent for %d ticks: %v", i, m.silentFor(learner), cc.GetChanges())
		}
	}
}

// Also without a serial, voters are removed only when enough new voters are ready.
func TestMembership_VotersStayUntilTheOthersAreReady(t *testing.T) {
	w := newWorld(t, 1, 3)
	w.calm(func() bool { l := w.leader(); return l != nil && l.core.Current() })
	c := w.leader().core
	for _, voters := range [][]uint64{{c.id, 5, 6}, {4, 5, 6}} {
		c.SetTarget(Target{Voters: voters})
		ready, all, quorum := c.Membership.readyVoters(c.Membership.target)
		if cc := c.Membership.difference(c.Membership.target, ready, all || quorum); len(cc.GetChanges()) > 0 {
			t.Errorf("target %v with %v ready: %v", voters, ready, cc.GetChanges())
		}
	}
}

// A member that is added again is not removed at once for its silence before.
func TestMembership_SilenceEndsWhenAMemberIsAdded(t *testing.T) {
	w := newWorld(t, 1, 3)
	w.calm(func() bool { l := w.leader(); return l != nil && l.core.Current() })
	c := w.leader().core
	c.Membership.silentTicks[9] = 2 * patienceTicks
	data, err := proto.Marshal(&raftpb.ConfChangeV2{Changes: []*raftpb.ConfChangeSingle{confChange(raftpb.ConfChangeAddLearnerNode, 9)}})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Membership.apply(&raftpb.Entry{Data: data}); err != nil {
		t.Fatal(err)
	}
	if cc := c.Membership.difference(c.Membership.target, nil, false); len(cc.GetChanges()) > 0 {
		t.Errorf("it is removed: %v", cc.GetChanges())
	}
}
