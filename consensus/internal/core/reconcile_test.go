package core

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// decides returns what a leader does next for its target. Other members are a, b, ... in order of
// their ids, and the leader is L. A change is never applied.
func (m *member) decides() string {
	m.w.t.Helper()
	m.core.Membership.checkDue = true
	return m.does()
}

// does is decides, if a step is due.
func (m *member) does() string {
	m.w.t.Helper()
	name := func(id uint64) string {
		switch {
		case id == m.id:
			return "L"
		case id > uint64(len(m.w.members)):
			return fmt.Sprint(id)
		case id > m.id:
			id--
		}
		return string(rune('a' + id - 1))
	}
	out, err := m.core.Ready(m.w.nowMs)
	if err != nil {
		m.w.t.Fatal(err)
	}
	var did []string
	for _, r := range out.Reconciled {
		did = append(did, fmt.Sprintf("target %d reached: %v", r.Serial, r.Reached))
	}
	for _, msg := range out.Messages {
		if msg.Raft.GetType() == raftpb.MsgTimeoutNow {
			did = append(did, "hands over to "+name(msg.To))
		}
	}
	kinds := map[raftpb.ConfChangeType]string{
		raftpb.ConfChangeAddNode: "voter", raftpb.ConfChangeAddLearnerNode: "learner", raftpb.ConfChangeRemoveNode: "remove",
	}
	for _, a := range out.Appends {
		for _, e := range a.GetEntries() {
			var cc raftpb.ConfChangeV2
			if e.GetType() != raftpb.EntryConfChangeV2 {
				continue
			}
			if err := proto.Unmarshal(e.GetData(), &cc); err != nil {
				m.w.t.Fatal(err)
			}
			for _, change := range cc.GetChanges() {
				did = append(did, kinds[change.GetType()]+" "+name(change.GetNodeId()))
			}
			if id, nonce, ok := decodeAdmitted(cc.GetContext()); ok {
				did = append(did, fmt.Sprintf("life %d of %s", nonce, name(id)))
			}
		}
	}
	return strings.Join(did, ", ")
}

// changes applies a change of the configuration, as if it was committed.
func (m *member) changes(context []byte, index uint64, changes ...*raftpb.ConfChangeSingle) {
	m.w.t.Helper()
	if len(changes) == 0 { // which would end a joint change
		changes = append(changes, confChange(raftpb.ConfChangeAddNode, m.id))
	}
	data, err := proto.Marshal(&raftpb.ConfChangeV2{Changes: changes, Context: context})
	if err == nil {
		err = m.core.Membership.apply(&raftpb.Entry{Index: &index, Data: data})
	}
	if err != nil {
		m.w.t.Fatal(err)
	}
}

// A leader takes one step after the other towards its target.
func TestMembership_StepsToTheTarget(t *testing.T) {
	type state struct {
		*member
		m       *Membership
		a, b, c uint64 // c is a learner
	}
	stays := func(s *state) { s.m.setTarget(Target{Voters: []uint64{s.id, s.a, s.b}, Learners: []uint64{s.c}}) }
	for _, tc := range []struct {
		what string
		do   func(s *state)
		want string
	}{
		{"no target", func(s *state) { s.core.connected[9], s.m.withState[9] = connectionUp, true }, ""},
		{"nothing to do", stays, ""},
		{"nothing to do, and a client waits", func(s *state) {
			s.m.setTarget(Target{Serial: 7, Voters: []uint64{s.id, s.a, s.b}, Learners: []uint64{s.c}})
		}, "target 7 reached: true"},
		{"a new voter", func(s *state) { s.m.setTarget(Target{Voters: []uint64{s.id, s.a, s.b, 9}}) }, "learner 9"},
		{"a new learner", func(s *state) { s.m.setTarget(Target{Voters: []uint64{s.id, s.a, s.b}, Learners: []uint64{s.c, 9}}) }, "learner 9"},
		{"a connected member with state", func(s *state) { stays(s); s.core.connected[9] = connectionUp; s.m.SetPeerState(9, true) }, "learner 9"},
		{"a connected member without state", func(s *state) { stays(s); s.core.connected[9] = connectionUp; s.m.SetPeerState(9, false) }, ""},
		{"a connected member that says later that it has a state", func(s *state) {
			stays(s)
			s.core.connected[9] = connectionFresh
			s.m.SetPeerState(9, false)
			s.m.checkDue = false // until it says so
			if err := s.core.Step(&Message{To: s.id, From: 9, commit: &commitNotice{1, 1}}); err != nil {
				t.Fatal(err)
			}
			if s.core.connected[9] != connectionUp {
				t.Error("a member that says that it has a state counts as one without")
			}
		}, "learner 9"},
		{"a member with state that was connected", func(s *state) { stays(s); s.m.SetPeerState(9, true) }, ""},
		{"a connected member that is to be added", func(s *state) {
			s.m.setTarget(Target{Voters: []uint64{s.id, s.a, s.b, 9}})
			s.core.connected[9], s.m.withState[9] = connectionUp, true
		}, "learner 9"},
		{"promotion", func(s *state) { s.m.setTarget(Target{Voters: []uint64{s.id, s.a, s.b, s.c}}) }, "voter c"},
		{"promotion, a tick before it counts as silent", func(s *state) {
			s.m.setTarget(Target{Voters: []uint64{s.id, s.a, s.b, s.c}})
			s.forgets([]uint64{s.a, s.b, s.c})
			s.silence(ElectionTicks - 1)
		}, "voter c"},
		{"promotion of a silent member", func(s *state) {
			s.m.setTarget(Target{Voters: []uint64{s.id, s.a, s.b, s.c}})
			s.silent()
		}, ""},
		{"while leadership is handed over", func(s *state) {
			s.m.setTarget(Target{Voters: []uint64{s.id, s.a, s.b, 9}})
			s.core.raft.TransferLeader(s.a)
		}, "hands over to a"},
		{"demotion", func(s *state) { s.m.setTarget(Target{Voters: []uint64{s.id, s.a}, Learners: []uint64{s.b, s.c}}) }, "learner b"},
		{"removal", func(s *state) { s.m.setTarget(Target{Voters: []uint64{s.id, s.a}}) }, "learner b"},
		{"an exchange", func(s *state) { s.m.setTarget(Target{Voters: []uint64{s.id, s.a, s.c}}) }, "voter c, learner b"},
		{"without the leader", func(s *state) { s.m.setTarget(Target{Voters: []uint64{s.a}}) }, "hands over to a"},
		{"without the leader, and nobody can take over", func(s *state) {
			s.m.setTarget(Target{Voters: []uint64{s.a}})
			s.forgets([]uint64{s.a, s.b, s.c})
		}, "learner b"},
		{"only without the leader, and nobody can take over", func(s *state) {
			s.m.setTarget(Target{Voters: []uint64{s.a, s.b}})
			s.forgets([]uint64{s.a, s.b, s.c})
		}, ""},
		{"for a client, only without the leader, and nobody can take over", func(s *state) {
			s.m.setTarget(Target{Serial: 7, Voters: []uint64{s.a, s.b}})
			s.forgets([]uint64{s.a, s.b, s.c})
		}, ""},
		{"during a joint change", func(s *state) {
			s.m.setTarget(Target{Voters: []uint64{s.id, s.a}})
			s.core.conf = &raftpb.ConfState{Voters: []uint64{s.id, s.a, s.b}, VotersOutgoing: []uint64{s.c}}
		}, ""},
		{"during another change", func(s *state) { s.m.setTarget(Target{Voters: []uint64{s.id, s.a}}); s.m.changeTicks = 1 }, ""},
		{"a stranger without state", func(s *state) { stays(s); s.m.noteJoin(9, 5) }, "learner 9, life 5 of 9"},
		{"two of them, without a target", func(s *state) { s.m.noteJoin(9, 5); s.m.noteJoin(8, 6) }, "learner 8, life 6 of 8"},
		{"itself", func(s *state) {
			s.silent()
			s.hears(0, s.a, s.b)
			s.m.noteJoin(s.id, 5)
		}, ""},
		{"a member that was let in", func(s *state) {
			s.changes(appendAdmitted(nil, s.c, 5), 9)
			s.silent()
			s.m.noteJoin(s.c, 5)
		}, ""},
		{"a member that was let in, and removed since", func(s *state) {
			s.changes(appendAdmitted(nil, 9, 5), 9)
			s.m.noteJoin(9, 5)
		}, "learner 9, life 5 of 9"},
		{"a member that has lost its state again", func(s *state) {
			s.changes(appendAdmitted(nil, s.c, 5), 9)
			s.silent()
			s.hears(0, s.a) // with the leader two of three voters
			s.m.noteJoin(s.c, 6)
		}, "remove c, life 0 of c"},
		{"a change of another kind", func(s *state) {
			s.changes([]byte("something else"), 9)
			s.changes(appendAdmitted(nil, s.c, 0), 9)
			s.m.noteJoin(s.c, 0)
		}, ""},
	} {
		l, others := newLeader(t, 4, 1)
		s := &state{l, l.core.Membership, others[0], others[1], others[2]}
		tc.do(s)
		if got := s.decides(); got != tc.want {
			t.Errorf("%s: it does %q, want %q", tc.what, got, tc.want)
		}
		if strings.HasPrefix(tc.want, "target") {
			if again := s.decides(); again != "" {
				t.Errorf("%s: the client is told again: %q", tc.what, again)
			}
		}
		if s.m.checkDue && !strings.HasPrefix(tc.what, "during") {
			t.Errorf("%s: it would look again in each turn", tc.what)
		}
		if strings.HasPrefix(tc.what, "while") {
			s.m.changeTicks = 0 // of the proposal that raft has dropped
		}
		proposed := strings.Contains(tc.want, "voter") || strings.Contains(tc.want, "learner") || strings.Contains(tc.want, "remove")
		if got := s.m.changeTicks > 0; got != (proposed || tc.what == "during another change") {
			t.Errorf("%s: a change is under way: %v", tc.what, got)
		}
		again := strings.HasPrefix(tc.want, "remove") || strings.HasPrefix(tc.what, "two")
		if s.m.Joining() != again || s.m.Reconfiguring() != (s.m.changeTicks > 0 || again) {
			t.Errorf("%s: joining %v, reconfiguring %v", tc.what, s.m.Joining(), s.m.Reconfiguring())
		}
	}
}

// silent makes a leader count all others as silent. Raft counts nobody as heard.
func (m *member) silent() {
	for _, o := range m.w.members {
		if o != m {
			m.hears(0, o.id)
		}
	}
	for range ElectionTicks {
		m.core.raft.Tick()
	}
	m.silence(ElectionTicks)
}

// lagging returns a leader of a voter and a learner, with a target of n members in all, the last of
// which are in the configuration, but have no entry.
func lagging(t *testing.T, serial uint64, n int) (l *member, m *Membership) {
	l, others := newLeader(t, 3, 0)
	target := Target{Serial: serial, Voters: []uint64{l.id, others[0]}}
	for id := uint64(9); len(target.Voters) < n; id++ {
		l.changes(nil, 9, confChange(raftpb.ConfChangeAddLearnerNode, id))
		target.Voters = append(target.Voters, id)
	}
	m = l.core.Membership
	m.setTarget(target)
	return l, m
}

// patient lets ticks pass in which the members of the first configuration are heard from.
func (m *member) patient(ticks int) {
	for range ticks {
		for _, o := range m.w.members {
			if o != m {
				m.hears(0, o.id)
			}
		}
		m.silence(1)
	}
}

// Without all of the new voters, a leader waits for patienceTicks. Then a quorum decides.
func TestMembership_DecidesWithoutTheLast(t *testing.T) {
	for _, tc := range []struct {
		serial uint64
		voters int
		want   string
	}{
		{0, 3, "learner b"}, // the last follows when it can
		{7, 3, "voter 9, learner b"},
		{7, 4, "target 7 reached: false"}, // two of four
		{0, 4, ""},
		{0, 5, ""},
		{7, 5, "target 7 reached: false"}, // three of five have not followed
	} {
		l, m := lagging(t, tc.serial, tc.voters)
		if tc.voters == 5 {
			m.target.Voters = slices.DeleteFunc(m.target.Voters, func(id uint64) bool { return id < 9 && id != l.id })
			m.target.Learners = m.conf.GetVoters()[:0:0]
			for _, o := range l.w.members {
				if o != l {
					m.target.Learners = append(m.target.Learners, o.id)
				}
			}
		}
		l.patient(patienceTicks - 1)
		if got := l.decides(); got != "" {
			t.Errorf("serial %d, %d voters: after %d ticks it does %q", tc.serial, tc.voters, patienceTicks-1, got)
		}
		l.patient(1)
		if got := l.decides(); got != tc.want {
			t.Errorf("serial %d, %d voters: after %d ticks it does %q, want %q", tc.serial, tc.voters, patienceTicks, got, tc.want)
		}
		if tc.voters == 4 && tc.serial != 0 {
			l.patient(1)
			if got := l.decides(); got != "" {
				t.Errorf("the client was told, and then %q", got)
			}
			target := m.target
			if m.setTarget(target); l.decides() != "" {
				t.Error("the client is told twice")
			}
			target.Serial++
			if m.setTarget(target); l.decides() != "" {
				t.Error("the next target does not wait")
			}
			l.patient(patienceTicks)
			if got := l.decides(); got != "target 8 reached: false" {
				t.Errorf("the next target: %q", got)
			}
			if m.setTarget(Target{Voters: target.Voters}); m.idleTicks != 0 {
				t.Errorf("the client has gone: nobody has made progress for %d ticks", m.idleTicks)
			}
		}
	}
}

// A refused target is not reached in part: neither a voter that is ready when the client is told,
// nor one that is ready later, becomes one without a quorum.
func TestMembership_RefusedInWhole(t *testing.T) {
	l, m := lagging(t, 7, 5)
	m.target.Voters = append(m.target.Voters[2:], l.id)
	l.hears(l.applied, 9)
	l.patient(patienceTicks)
	for _, want := range []string{"target 7 reached: false", ""} {
		if got := l.decides(); got != want {
			t.Errorf("it does %q, want %q", got, want)
		}
	}
	for _, id := range []uint64{10, 11} {
		l.hears(l.applied, id)
	}
	if got := l.decides(); got != "voter 9, voter 10, voter 11, learner a, learner b" {
		t.Errorf("when all are ready it does %q", got)
	}
}

// A leader outside the target leads until the others are ready.
func TestMembership_LeadsUntilTheOthersAreReady(t *testing.T) {
	l, m := lagging(t, 0, 4)
	m.target.Voters = m.target.Voters[1:]
	if got := l.decides(); got != "" {
		t.Errorf("it does %q", got)
	}
	l.hears(l.applied, 9, 10)
	if got := l.decides(); !strings.HasPrefix(got, "hands over") {
		t.Errorf("when all are ready it does %q", got)
	}
}

// An entry that is no change of the configuration stops the member.
func TestMembership_DamagedChange(t *testing.T) {
	l, _ := newLeader(t, 1, 0)
	if err := l.core.Membership.apply(&raftpb.Entry{Data: []byte{0xff}}); err == nil {
		t.Error("it is applied")
	}
}

// Entries that a future voter gets show progress; what it had, or others get, does not.
func TestMembership_ProgressEndsTheWait(t *testing.T) {
	l, m := lagging(t, 7, 3)
	l.core.applied += 2 * caughtUpEntries // all lack entries
	target := m.target
	m.readyVoters(target)
	for _, tc := range []struct {
		what string
		do   func()
		want int
	}{
		{"nothing", func() {}, 5},
		{"one entry", func() { l.hears(1, 9) }, 0},
		{"the same entry", func() { l.hears(1, 9) }, 5},
		{"another entry", func() { l.hears(2, 9) }, 0},
		{"a member that has all, and is silent", func() {
			l.core.applied -= 2 * caughtUpEntries
			m.bestMatch = map[uint64]uint64{}
			m.silentTicks[9] = ElectionTicks
		}, 5},
	} {
		m.idleTicks = 5
		tc.do()
		if m.readyVoters(target); m.idleTicks != tc.want {
			t.Errorf("%s: %d ticks without progress, want %d", tc.what, m.idleTicks, tc.want)
		}
	}
}

// A change that raft drops is proposed again after two election timeouts, but not before.
func TestMembership_ADroppedChangeIsProposedAgain(t *testing.T) {
	l, m := lagging(t, 0, 2)
	if got := l.decides(); got != "learner b" {
		t.Fatal(got)
	}
	l.silence(2*ElectionTicks - 1)
	if !m.Reconfiguring() || l.decides() != "" {
		t.Error("the change is not under way any more")
	}
	if l.silence(1); m.changeTicks != 0 {
		t.Error("the change is still under way")
	}
	if l.decides(); m.changeTicks != 1 {
		t.Error("it is not proposed again")
	}
}

// Whatever may make a step due makes the leader look.
func TestMembership_LooksAgain(t *testing.T) {
	for what, do := range map[string]func(l *member, m *Membership){
		"a target":   func(l *member, m *Membership) { m.setTarget(m.target) },
		"a tick":     func(l *member, m *Membership) { m.tick() },
		"a request":  func(l *member, m *Membership) { m.noteJoin(9, 5) },
		"a change":   func(l *member, m *Membership) { l.changes(nil, 9) },
		"leadership": func(l *member, m *Membership) { m.leadershipChanged() },
	} {
		l, m := lagging(t, 0, 2)
		m.checkDue = false
		if got := l.does(); got != "" {
			t.Errorf("nothing has happened, and it does %q", got)
		}
		if do(l, m); l.does() == "" {
			t.Errorf("%s: it does nothing", what)
		}
	}
}

// What a leader measured does not count for the next one.
func TestMembership_EachLeaderMeasuresAnew(t *testing.T) {
	l, _ := newLeader(t, 3, 0)
	m := l.core.Membership
	m.changeTicks, m.idleTicks, m.reported, m.checkDue = 3, 4, true, false
	m.bestMatch[2], m.silentTicks[2] = 5, 6
	m.leadershipChanged()
	if m.changeTicks != 0 || m.idleTicks != 0 || m.reported || !m.checkDue || len(m.bestMatch) > 0 || len(m.silentTicks) > 0 {
		t.Errorf("%+v", m)
	}
	m.changeTicks, m.idleTicks = 3, 4
	m.bestMatch[2] = 5
	m.setTarget(m.target)
	if m.idleTicks != 4 || len(m.bestMatch) != 1 {
		t.Error("the same target begins anew")
	}
	m.setTarget(Target{Serial: m.target.Serial + 1})
	if m.idleTicks != 0 || len(m.bestMatch) != 0 {
		t.Error("another target goes on with the wait for the previous one")
	}
	m.idleTicks = 4
	if l.changes(nil, 9); m.changeTicks != 0 || m.idleTicks != 0 {
		t.Error("a change goes on with the wait for the previous one")
	}
}

// A follower counts nobody as silent: its raft hears from the leader only.
func TestMembership_FollowersCountNoSilence(t *testing.T) {
	l, others := newLeader(t, 3, 0)
	f := l.w.members[others[0]-1]
	f.silence(5)
	if len(f.core.Membership.silentTicks) > 0 {
		t.Errorf("%v", f.core.Membership.silentTicks)
	}
	f.core.Membership.noteJoin(9, 5)
	if f.core.Membership.Joining() || !f.core.Membership.Reconfiguring() {
		t.Error("a follower lets members in")
	}
}

// A checkpoint from before a member was added is of no use to the member.
func TestMembership_CheckpointsOfOldConfigurations(t *testing.T) {
	l, others := newLeader(t, 3, 0)
	m := l.core.Membership
	l.changes(nil, 30, confChange(raftpb.ConfChangeAddLearnerNode, 9))
	l.changes(nil, 30, confChange(raftpb.ConfChangeAddNode, others[0])) // as before
	for _, tc := range []struct {
		index, id uint64
		want      bool
	}{{29, 9, false}, {30, 9, true}, {1, others[0], true}} {
		if m.CheckpointKnows(tc.index, tc.id) != tc.want {
			t.Errorf("a checkpoint of entry %d knows member %d: want %v", tc.index, tc.id, tc.want)
		}
	}
	if !m.inConf(9) || m.isVoter(9) || slices.Contains(m.conf.GetLearners(), others[0]) {
		t.Errorf("%v", m.conf)
	}
}

// The member that is let in again does not count among the voters that must be a quorum.
func TestMembership_LetInAgainWithoutItsVote(t *testing.T) {
	l, others := newLeader(t, 4, 0)
	l.silent()
	l.hears(0, others[1])
	l.core.Membership.noteJoin(others[0], 6)
	if got := l.decides(); got != "remove a, life 0 of a" {
		t.Errorf("two of the three others are there, and it does %q", got)
	}
}
