package core

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// joins gives a member the announcement of another, and returns what it sends.
func (c *Core) joins(from, nonce, founders uint64) []Message {
	c.outbox = nil
	c.Admission.handleJoin(from, &joinRequest{nonce, founders})
	return c.outbox
}

// newYoung returns a member that has formed an ensemble of 1, 2 and 3, in which nothing is
// committed. While it was fresh, it heard of life 20 of member 2.
func newYoung(t *testing.T) *Core {
	t.Helper()
	c := newFresh(t)
	c.joins(2, 20, hashFounders([]uint64{1, 2, 3}))
	if err := c.Formed(); err != nil {
		t.Fatal(err)
	}
	return c
}

// Each member answers the announcement of a member without state.
func TestAdmission_Answers(t *testing.T) {
	founders := hashFounders([]uint64{1, 2, 3})
	l, others := newLeader(t, 4, 1)
	learner := others[2]
	l.changes(appendAdmitted(nil, learner, 5), 9)
	l.changes(appendAdmitted(nil, 9, 6), 9)
	leader, follower, young := l.core, l.w.members[others[0]-1].core, newYoung(t)
	follower.Membership.admitted[learner] = 5
	for _, tc := range []struct {
		what        string
		c           *Core
		from, nonce uint64
		want        joinAnswer
		noted       bool
	}{
		{"a leader, to a life that it let in", leader, learner, 5, joinAnswer{state: joinAdmitted, term: leader.raftTerm}, false},
		{"a leader, to another life", leader, learner, 6, joinAnswer{state: joinEnsembleExists}, true},
		{"a leader, to a member that was removed since", leader, 9, 6, joinAnswer{state: joinEnsembleExists}, true},
		{"a leader, to a voter", leader, others[0], 7, joinAnswer{state: joinEnsembleExists}, true},
		{"a follower, to a life that was let in", follower, learner, 5, joinAnswer{state: joinEnsembleExists}, false},
		{"a founder, to a life that it knew", young, 2, 20, joinAnswer{state: joinFormedKnowing, founders: founders, term: 1}, false},
		{"a founder, to another life", young, 2, 21, joinAnswer{state: joinFormed, founders: founders, term: 1}, false},
		{"a founder, to a life without a nonce", young, 3, 0, joinAnswer{state: joinFormed, founders: founders, term: 1}, false},
	} {
		clear(tc.c.Membership.joinNonces)
		tc.want.nonce = tc.nonce
		sent := tc.c.joins(tc.from, tc.nonce, founders)
		if len(sent) != 1 || sent[0].To != tc.from || sent[0].answer == nil || *sent[0].answer != tc.want {
			t.Errorf("%s: %+v, want %+v", tc.what, sent, tc.want)
		}
		if nonce, noted := tc.c.Membership.joinNonces[tc.from]; noted != tc.noted || noted && nonce != tc.nonce {
			t.Errorf("%s: noted %v", tc.what, tc.c.Membership.joinNonces)
		}
	}
}

// A connected member that announces itself has no data, until it is heard in raft. An outdated
// member has.
func TestAdmission_KnowsWhoHasNoData(t *testing.T) {
	for _, tc := range []struct {
		before   connection
		founders uint64
		want     connection
	}{
		{connectionUp, 1, connectionFresh}, {connectionUp, 5, connectionFresh}, {connectionUp, 0, connectionUp}, {0, 5, 0}, {0, 0, 0},
	} {
		c := newYoung(t)
		if tc.before != 0 {
			c.connected[2] = tc.before
		}
		c.joins(2, 8, tc.founders)
		if got := c.connected[2]; got != tc.want {
			t.Errorf("connection %d, founders %d: connection %d, want %d", tc.before, tc.founders, got, tc.want)
		}
		if _, connected := c.connected[2]; connected != (tc.want != 0) {
			t.Error("an announcement is taken for a connection")
		}
		c.Membership.noteState(2)
		if got := c.connected[2]; got == connectionFresh || (got != 0) != (tc.before != 0) {
			t.Errorf("after a message of raft: connection %d", got)
		}
	}
}

func TestAdmission_Inventory(t *testing.T) {
	l, _ := newLeader(t, 1, 0)
	for _, tc := range []struct {
		what          string
		c             *Core
		without, with []uint64
	}{
		{"a fresh member", newFresh(t), []uint64{1, 2}, []uint64{3}},
		{"a founder", newYoung(t), nil, nil},
		{"a member with data", l.core, []uint64{2}, []uint64{1, 3}},
	} {
		tc.c.connected[2], tc.c.connected[4] = connectionFresh, connectionUp
		tc.c.Admission.holders[3] = true
		without, with := tc.c.Admission.Inventory()
		slices.Sort(without)
		slices.Sort(with)
		if !slices.Equal(without, tc.without) || !slices.Equal(with, tc.with) {
			t.Errorf("%s: %v without data, %v with data", tc.what, without, with)
		}
	}
}

func TestAdmission_MissingFounders(t *testing.T) {
	c := newFresh(t)
	if got := c.Admission.MissingFounders(); !slices.Equal(got, []uint64{2, 3}) {
		t.Errorf("nobody was heard of, and %v are missing", got)
	}
	c.joins(3, 8, hashFounders(c.Admission.voters))
	if got := c.Admission.MissingFounders(); !slices.Equal(got, []uint64{2}) {
		t.Errorf("member 3 was heard of, and %v are missing", got)
	}
}

// announces returns to whom a member announces itself in the ticks, and the last announcement.
func (c *Core) announces(ticks int) (to map[uint64]int, last joinRequest) {
	c.outbox = nil
	to = map[uint64]int{}
	for range ticks {
		c.Admission.tick()
	}
	for _, m := range c.outbox {
		to[m.To]++
		last = *m.join
	}
	return to, last
}

// A member without state announces itself to all every joinTicks, however long nobody answers, and
// so does an outdated one, once its log says so; it shows that it could found nothing.
func TestAdmission_Announces(t *testing.T) {
	const times = 1000
	want := map[uint64]int{2: times, 3: times}
	c := newFresh(t)
	c.Admission.SetPeers([]uint64{3, 2})
	if to, last := c.announces(times * joinTicks); !maps.Equal(to, want) || last != (joinRequest{7, hashFounders(c.Admission.voters)}) {
		t.Errorf("a fresh member: %v, last %+v", to, last)
	}
	first := newFresh(t)
	first.Admission.SetPeers([]uint64{2})
	if to, _ := first.announces(1); to[2] != 1 {
		t.Error("a fresh member waits with its first announcement")
	}
	o := newOutdated(t, 5)
	o.Admission.SetPeers([]uint64{2, 3})
	if to, _ := o.announces(times * joinTicks); len(to) > 0 {
		t.Errorf("an outdated member whose log does not say so: %v", to)
	}
	if err := o.Persisted(o.Admission.MarkAppend().GetResponses()[0]); err != nil {
		t.Fatal(err)
	}
	if to, last := o.announces(times * joinTicks); !maps.Equal(to, want) || last != (joinRequest{7, 0}) {
		t.Errorf("an outdated member: %v, last %+v", to, last)
	}
	young := newYoung(t)
	young.Admission.SetPeers([]uint64{2, 3})
	if to, _ := young.announces(times * joinTicks); len(to) > 0 {
		t.Errorf("a member with state: %v", to)
	}
}

// A fresh member answers the first announcement of another with its own, which may have been lost.
func TestAdmission_AnswersAnAnnouncementOnce(t *testing.T) {
	c := newFresh(t)
	same := hashFounders(c.Admission.voters)
	for i, want := range []int{0, 1, 0} {
		founders := same
		if i == 0 {
			founders = same + 1 // it would form another ensemble
		}
		if sent := c.joins(2, 8, founders); len(sent) != want || want > 0 && (sent[0].To != 2 || sent[0].join == nil) {
			t.Errorf("announcement %d: %+v sent", i, sent)
		}
	}
	if c.Admission.nonces[2] != 8 {
		t.Error("it does not remember the life")
	}
}

// A member that was let in ignores what earlier leaders sent, and requests for a vote in the term
// in which it may have voted. Read rounds have no term.
func TestAdmitted_IgnoresWhatIsFromBefore(t *testing.T) {
	for _, tc := range []struct {
		typ  raftpb.MessageType
		term uint64
		want bool
	}{
		{raftpb.MsgHeartbeat, 1, true}, {raftpb.MsgHeartbeat, 4, true}, {raftpb.MsgApp, 4, true}, {raftpb.MsgHeartbeat, 5, false},
		{raftpb.MsgApp, 5, false}, {raftpb.MsgVote, 5, true}, {raftpb.MsgVote, 6, false}, {raftpb.MsgReadIndex, 0, false},
	} {
		c := newFresh(t)
		c.stepAnswer(t, 2, &joinAnswer{nonce: 7, state: joinAdmitted, term: 5})
		if got := c.Admission.tooEarly(&raftpb.Message{Type: tc.typ.Enum(), Term: &tc.term}); got != tc.want {
			t.Errorf("let in in term 5, %v of term %d: too early %v", tc.typ, tc.term, got)
		}
	}
}

// How many members must be known to form an ensemble.
func TestAdmission_FormsWithAMajority(t *testing.T) {
	for _, tc := range []struct {
		what          string
		voters        []uint64
		fresh, formed []uint64 // the formed ones do not know this life
		late          bool
		want          bool
	}{
		{"three of five, in time", []uint64{1, 2, 3, 4, 5}, []uint64{2, 3}, nil, false, false},
		{"three of five", []uint64{1, 2, 3, 4, 5}, []uint64{2, 3}, nil, true, true},
		{"two of five", []uint64{1, 2, 3, 4, 5}, []uint64{2}, nil, true, false},
		{"two of four", []uint64{1, 2, 3, 4}, []uint64{2}, nil, true, false},
		{"three of five, one of which has formed", []uint64{1, 2, 3, 4, 5}, []uint64{2}, []uint64{3}, true, false},
		{"all, two of which have formed", []uint64{1, 2, 3}, nil, []uint64{2, 3}, false, true},
		{"all, two of which have formed, late", []uint64{1, 2, 3}, nil, []uint64{2, 3}, true, true},
		{"itself alone", []uint64{1}, nil, nil, false, true},
		{"itself twice", []uint64{1, 2, 3}, []uint64{1}, nil, true, false},
		{"others only", []uint64{2, 3, 4}, []uint64{2, 3, 4}, nil, true, false},
		{"nobody is configured", nil, nil, nil, true, false},
	} {
		c := newFresh(t)
		a := c.Admission
		a.voters = tc.voters
		a.SetPeers([]uint64{2, 3})
		for _, id := range tc.fresh {
			a.noteFounder(id, hashFounders(tc.voters), true)
		}
		for _, id := range tc.formed {
			c.stepAnswer(t, id, &joinAnswer{nonce: 7, state: joinFormed, founders: hashFounders(tc.voters), term: 1})
		}
		if tc.late {
			a.ticks = a.graceTicks
		}
		c.outbox = nil
		var out, again Output
		a.form(&out)
		if announced := len(c.outbox) == 2; out.Form != tc.want || announced != tc.want {
			t.Errorf("%s: forms %v, announces itself %v", tc.what, out.Form, announced)
		}
		if a.form(&again); again.Form {
			t.Errorf("%s: forms twice", tc.what)
		}
		c.stepAnswer(t, 2, &joinAnswer{nonce: 7, state: joinAdmitted, term: 5}) // too late if it forms
		if c.fresh != tc.want {
			t.Errorf("%s: then let in, and fresh is %v", tc.what, c.fresh)
		}
		if a.form(&again); again.Form {
			t.Errorf("%s: forms after it was let in", tc.what)
		}
	}
}

// A member whose directory was emptied forms an ensemble only when all others, those without a vote
// and those that its configuration does not name included, have said that they have no data. It
// says so, so that others do not count it for a majority.
func TestAdmission_EmptiedWaitsForAll(t *testing.T) {
	all := []uint64{2, 3, 5}
	for _, tc := range []struct {
		peers, heard []uint64
		want         bool
	}{
		{all, []uint64{2}, false}, {all, []uint64{2, 3}, false}, {all, []uint64{2, 3, 4}, false}, {all, []uint64{2, 3, 5}, false},
		{all, []uint64{3, 4, 5}, false}, {all, []uint64{2, 3, 4, 5}, true}, {[]uint64{3, 5}, []uint64{3, 4, 5}, false},
	} {
		c := newFresh(t)
		a := c.Admission
		a.graceTicks, a.learners = -1, []uint64{4}
		a.SetPeers(tc.peers)
		if _, last := c.announces(10); last != (joinRequest{7, ^hashFounders(a.voters)}) {
			t.Errorf("it announces %+v", last)
		}
		for _, id := range tc.heard {
			a.noteFounder(id, hashFounders(a.voters), true)
		}
		var out Output
		if a.form(&out); out.Form != tc.want {
			t.Errorf("%v have no data: forms %v", tc.heard, out.Form)
		}
	}
	c := newFresh(t) // whose directory was not emptied, and which waits for nobody but a majority
	c.Admission.graceTicks = 0
	c.Admission.SetPeers([]uint64{2, 3})
	c.Admission.noteFounder(2, hashFounders(c.Admission.voters), true)
	var out Output
	if c.Admission.form(&out); !out.Form || c.outbox[0].join.founders != hashFounders(c.Admission.voters) {
		t.Errorf("with a majority, without a grace time: forms %v, announces %+v", out.Form, c.outbox)
	}
}

// A member that was let in forms no ensemble, also if all others would.
func TestAdmission_LetInFormsNothing(t *testing.T) {
	c := newFresh(t)
	c.stepAnswer(t, 2, &joinAnswer{nonce: 7, state: joinAdmitted, term: 5})
	for _, id := range []uint64{2, 3} {
		c.Admission.noteFounder(id, hashFounders(c.Admission.voters), true)
	}
	var out Output
	if c.Admission.form(&out); out.Form {
		t.Error("it forms one")
	}
}

// In the first term nobody has voted yet.
func TestAdmission_FirstState(t *testing.T) {
	c := newFresh(t)
	for term, want := range map[uint64]LogState{1: {Term: 1, Commit: 1}, 2: {Term: 2, Vote: 1, Commit: 1}} {
		if c.Admission.foundersTerm = term; c.Admission.FirstState() != want {
			t.Errorf("the others know term %d: %+v, want %+v", term, c.Admission.FirstState(), want)
		}
	}
}

// A founder's first state is that of entry 1, with the members that were configured.
func TestAdmission_Formed(t *testing.T) {
	c := newFresh(t)
	c.Admission.learners = []uint64{4}
	if err := c.Formed(); err != nil {
		t.Fatal(err)
	}
	if c.fresh || c.applied != 1 || c.appliedTerm != 1 || !slices.Equal(c.conf.GetVoters(), []uint64{1, 2, 3}) || !slices.Equal(c.conf.GetLearners(), []uint64{4}) {
		t.Errorf("%v", c)
	}
	given, err := New(Config{
		ID: 1, Incarnation: 1, Storage: raft.NewMemoryStorage(), Voters: []uint64{1}, Learners: []uint64{2},
		Retention: DefaultRetention(1 << 40), Random: func() uint64 { return 0 }, Logger: quiet,
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := given.FirstMeta().Conf; !slices.Equal(got.GetVoters(), []uint64{1}) || !slices.Equal(got.GetLearners(), []uint64{2}) {
		t.Errorf("its first configuration is %v", got)
	}
}

// An answer is for a member that waits, and says what it says only once the member may believe it.
func TestAdmission_LateAnswers(t *testing.T) {
	young := newYoung(t)
	young.stepAnswer(t, 2, &joinAnswer{nonce: 7, state: joinAdmitted, term: 5})
	young.stepAnswer(t, 2, &joinAnswer{nonce: 7, state: joinEnsembleExists})
	if young.minTerm != 0 || len(young.Admission.holders) > 0 || young.Admitted() {
		t.Error("a member with state takes an answer")
	}
	c := newFresh(t)
	c.stepAnswer(t, 2, &joinAnswer{nonce: 7, state: joinEnsembleExists})
	if !c.Admission.holders[2] {
		t.Error("a fresh member forgets who has data")
	}
	o := newOutdated(t, 5)
	if err := o.Persisted(o.Admission.MarkAppend().GetResponses()[0]); err != nil {
		t.Fatal(err)
	}
	for _, state := range []joinState{joinEnsembleExists, joinFormed, joinFormedKnowing} {
		if o.stepAnswer(t, 2, &joinAnswer{nonce: 7, state: state}); o.Outdated() == "" {
			t.Errorf("an outdated member is let in by answer %d", state)
		}
	}
}

// A member is outdated if a request of a later start than it knows was applied, unless that start
// is the present one.
func TestOutdated_ByAnIncarnation(t *testing.T) {
	for _, tc := range []struct {
		past, seen, own uint64
		want            bool
	}{
		{4, 5, 9, true}, {4, 4, 9, false}, {4, 3, 9, false}, {4, 9, 9, false}, {0, 5, 9, false}, {1, 5, 9, true},
	} {
		c := newYoung(t)
		c.Admission.past.incarnation = tc.past
		c.Admission.seeIncarnation(tc.seen, tc.own)
		if got := c.Outdated() != ""; got != tc.want {
			t.Errorf("it knew start %d, is start %d, and start %d was applied: outdated %v", tc.past, tc.own, tc.seen, got)
		}
	}
}

// A heartbeat shows that a member is outdated if it commits what is not in its log, in its present
// term or a later one.
func TestOutdated_ByAHeartbeat(t *testing.T) {
	for _, tc := range []struct {
		term, commit uint64
		passes       bool
	}{{5, 1, true}, {5, 2, false}, {6, 2, false}, {4, 2, true}} {
		c := newOutdated(t, 5)
		c.proof = ""
		ok, err := c.Admission.checkCommit(&raftpb.Message{Term: &tc.term, Commit: &tc.commit})
		if ok != tc.passes || err != nil || (c.Outdated() == "") != tc.passes {
			t.Errorf("term %d, commit %d: passes %v, %v, outdated %q", tc.term, tc.commit, ok, err, c.Outdated())
		}
	}
	// Raft must not see such a heartbeat, even if it proves nothing about this member: raft would
	// panic.
	c := newOutdated(t, 5)
	c.proof, c.Admission.past.incarnation = "", 0
	r := &raftpb.Message{Type: raftpb.MsgHeartbeat.Enum(), To: &c.id, From: new(uint64(2)), Term: new(uint64(6)), Commit: new(uint64(2))}
	if err := c.Step(&Message{To: c.id, From: 2, Raft: r}); err != nil || c.Outdated() != "" {
		t.Errorf("%v, outdated %q", err, c.Outdated())
	}
}

// An outdated member follows nobody, and keeps the first proof.
func TestOutdated_StandsAside(t *testing.T) {
	c := newOutdated(t, 5)
	c.proof, c.leader, c.role = "", 2, raft.StateLeader
	if c.Admission.becomeOutdated("first"); c.leader != raft.None || c.role != raft.StateFollower {
		t.Errorf("%v", c)
	}
	if c.Admission.becomeOutdated("second"); c.Outdated() != "first" {
		t.Errorf("the proof is %q", c.Outdated())
	}
	c.proof = ""
	if err := c.raft.Campaign(); err != nil {
		t.Fatal(err)
	}
	c.proof = "found meanwhile"
	if out, err := c.Ready(0); err != nil || !out.Empty() {
		t.Errorf("it campaigns: %+v, %v", out, err)
	}
	if m := c.Mark(); !m.Outdated || m.Term != 0 || m.Vote != 0 {
		t.Errorf("its mark is %+v", m)
	}
}

// startOutdated starts a member whose log says that it is outdated.
func startOutdated(t *testing.T, voters ...uint64) *Core {
	t.Helper()
	conf := &raftpb.ConfState{Voters: voters}
	storage := raft.NewMemoryStorage()
	if err := errors.Join(storage.ApplySnapshot(Snapshot(1, 1, conf)), storage.SetHardState(LogState{Term: 5, Commit: 1}.HardState())); err != nil {
		t.Fatal(err)
	}
	c, err := New(Config{
		ID: 1, Incarnation: 9, Past: 4, Outdated: true, Nonce: 7, Storage: storage, Meta: Meta{Member: 1, Level: Level4, Index: 1, Term: 1, Conf: conf},
		Retention: DefaultRetention(1 << 40), Random: func() uint64 { return 0 }, Logger: quiet,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A member whose log says that it is outdated begins outdated, and may be let in at once: the mark
// is durable. One that was alone may have applied what the others have not.
func TestOutdated_Starts(t *testing.T) {
	for _, tc := range []struct {
		voters []uint64
		alone  bool
	}{{[]uint64{1, 2, 3}, false}, {[]uint64{1}, true}, {[]uint64{2}, false}, {[]uint64{1, 2}, false}} {
		c := startOutdated(t, tc.voters...)
		if c.Outdated() == "" || !c.Admission.past.durable {
			t.Fatal("it takes part")
		}
		out, err := c.Ready(0)
		if err != nil || len(out.Appends) > 0 || len(out.Messages) > 0 {
			t.Errorf("%v: it does %+v, %v", tc.voters, out, err)
		}
		err = c.Step(&Message{To: 1, From: 2, answer: &joinAnswer{nonce: 7, state: joinAdmitted, term: 8}})
		if errors.Is(err, errOutdatedAlone) != tc.alone || (c.Outdated() == "") == tc.alone {
			t.Errorf("%v: let in %v, %v", tc.voters, c.Outdated() == "", err)
		}
		if tc.alone {
			continue
		}
		if err != nil || c.minTerm != 8 || c.raftTerm != 8 || c.applied != 1 || !c.Admitted() {
			t.Errorf("%v: %v", c, err)
		}
		if p := c.Admission.past; p != (pastLife{term: 8}) {
			t.Errorf("its past is %+v", p)
		}
	}
	young := newYoung(t)
	if young.Admission.stayOutdated() || young.Outdated() != "" {
		t.Error("a member without a past is outdated")
	}
}
