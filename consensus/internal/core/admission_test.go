package core

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// newFresh returns a member without state that may form an ensemble of 1, 2 and 3.
func newFresh(t *testing.T) *Core {
	t.Helper()
	c, err := New(Config{
		ID: 1, Incarnation: 1, Storage: raft.NewMemoryStorage(), Voters: []uint64{1, 2, 3}, Nonce: 7, GraceTicks: 3,
		Retention: DefaultRetention(1 << 40), Random: func() uint64 { return 0 }, Logger: quiet,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *Core) stepAnswer(t *testing.T, from uint64, a *joinAnswer) {
	t.Helper()
	if err := c.Step(&Message{To: c.id, From: from, answer: a}); err != nil {
		t.Fatal(err)
	}
}

// A leader lets in a life of a member, not the member: an answer to an earlier life, which had a
// log, says nothing about this life.
func TestStartup_AnswerToAnEarlierLifeLetsNobodyIn(t *testing.T) {
	c := newFresh(t)
	if c.stepAnswer(t, 2, &joinAnswer{nonce: 6, state: joinAdmitted, term: 5}); !c.Fresh() {
		t.Error("let in by the answer to an earlier life")
	}
	if c.stepAnswer(t, 2, &joinAnswer{nonce: 7, state: joinAdmitted, term: 5}); c.Fresh() {
		t.Error("not let in by the answer to this life")
	}
}

// A majority forms an ensemble only if its members know this life: otherwise this member may have
// been part of their ensemble before it lost its data.
func TestStartup_AMajorityMustKnowThisLife(t *testing.T) {
	for state, want := range map[joinState]bool{joinFormed: false, joinFormedKnowing: true} {
		c := newFresh(t)
		for range c.Admission.graceTicks {
			c.Tick()
		}
		c.stepAnswer(t, 2, &joinAnswer{nonce: 7, state: state, founders: hashFounders(c.Admission.voters), term: 1})
		out, err := c.Ready(0)
		if err != nil {
			t.Fatal(err)
		}
		if out.Form != want {
			t.Errorf("answer %d: form %v, want %v", state, out.Form, want)
		}
	}
}

// A member that is added does not count until it has the log: the ensemble must not need it.
func TestMembership_NewMembersBeginAsLearners(t *testing.T) {
	w := newWorld(t, 1, 3)
	first := w.members[0].checkpoint
	first.Member = 4
	absent := &member{w: w, id: 4, levels: w.members[0].levels, cut: true, state: LogState{Term: 1, Commit: 1}, checkpoint: first}
	absent.start()
	w.members = append(w.members, absent)
	w.calm(func() bool { l := w.leader(); return l != nil && l.core.Current() })
	c := w.leader().core
	c.SetTarget(Target{Voters: []uint64{1, 2, 3, 4}})
	w.calm(func() bool { return c.inConf(4) })
	if c.isVoter(4) || !slices.Contains(c.conf.GetLearners(), 4) {
		t.Errorf("voters %v, learners %v", c.conf.GetVoters(), c.conf.GetLearners())
	}
}

// A fresh member forms an ensemble when all its voters are fresh, or after the time when a majority
// is. It never does when one has said that there is an ensemble.
func TestStartup_Forms(t *testing.T) {
	join := func(from, founders uint64) Message {
		return Message{To: 1, From: from, join: &joinRequest{nonce: from, founders: founders}}
	}
	same, other := hashFounders([]uint64{1, 2, 3}), hashFounders([]uint64{1, 2, 4})
	exists := Message{To: 1, From: 3, answer: &joinAnswer{nonce: 7, state: joinEnsembleExists}}
	late := Message{To: 1, From: 3, answer: &joinAnswer{nonce: 6, state: joinFormedKnowing, founders: same}}
	for _, tc := range []struct {
		what          string
		heard         []Message
		before, after bool // the time is over
	}{
		{"nobody", nil, false, false},
		{"a majority", []Message{join(2, same)}, false, true},
		{"all", []Message{join(2, same), join(3, same)}, true, true},
		{"one of another ensemble", []Message{join(2, other)}, false, false},
		{"an outdated member", []Message{join(2, 0)}, false, false},
		{"a majority, and one with data", []Message{join(2, same), exists}, false, false},
		{"one twice", []Message{join(2, same), join(2, same)}, false, true},
		{"an answer to an earlier life", []Message{late}, false, false},
		{"a majority with an emptied one", []Message{join(2, ^same)}, false, false},
		{"all, one of which was emptied", []Message{join(2, same), join(3, ^same)}, true, true},
	} {
		c := newFresh(t)
		forms := func() bool {
			out, err := c.Ready(0)
			if err != nil {
				t.Fatal(err)
			}
			return out.Form
		}
		for _, m := range tc.heard {
			if err := c.Step(&m); err != nil {
				t.Fatal(err)
			}
		}
		before := forms()
		for range c.Admission.graceTicks - 1 {
			c.Tick()
		}
		before = forms() || before
		c.Tick()
		if after := forms() || before; before != tc.before || after != tc.after {
			t.Errorf("%s heard: forms %v, after the time %v", tc.what, before, after)
		}
	}
}

// votes reports whether a member votes for member 3, whose log is long, in a term.
func (c *Core) votes(t *testing.T, term uint64) (votes bool) {
	t.Helper()
	m := &raftpb.Message{Type: raftpb.MsgVote.Enum(), To: &c.id, From: new(uint64(3)), Term: &term, LogTerm: new(uint64(1 << 20)), Index: new(uint64(1 << 20))}
	if err := c.Step(&Message{To: c.id, From: 3, Raft: m}); err != nil {
		t.Fatal(err)
	}
	out, err := c.Ready(0)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range out.Appends {
		for _, r := range a.GetResponses() {
			votes = votes || r.GetType() == raftpb.MsgVoteResp && !r.GetReject()
		}
	}
	return votes
}

// A member that was let in may have voted in the terms up to that of the leader that let it in.
func TestAdmitted_VotesInLaterTerms(t *testing.T) {
	for term, want := range map[uint64]bool{4: false, 5: false, 6: true} {
		c := newFresh(t)
		if c.stepAnswer(t, 2, &joinAnswer{nonce: 7, state: joinAdmitted, term: 5}); c.votes(t, term) != want {
			t.Errorf("let in by the leader of term 5, its vote in term %d: want %v", term, want)
		}
	}
}

// A founder votes in no term in which its earlier life may have voted: those that the others know.
func TestFounder_VotesInLaterTerms(t *testing.T) {
	for term, want := range map[uint64]bool{4: false, 5: false, 6: true} {
		c := newFresh(t)
		for from, known := range map[uint64]uint64{2: 5, 3: 4} {
			c.stepAnswer(t, from, &joinAnswer{nonce: 7, state: joinFormed, founders: hashFounders(c.Admission.voters), term: known})
		}
		if err := c.Formed(); err != nil {
			t.Fatal(err)
		}
		if first := c.Admission.FirstState(); first.Term != 5 || first.Vote != c.id {
			t.Errorf("its first state is %+v", first)
		}
		if c.votes(t, term) != want {
			t.Errorf("the others know terms up to 5, its vote in term %d: want %v", term, want)
		}
	}
	c := newFresh(t) // in a new ensemble no term is known
	if first := c.Admission.FirstState(); first != (LogState{Term: 1, Commit: 1}) {
		t.Errorf("the first state of a new ensemble is %+v", first)
	}
}

// An outdated member that was let in votes neither in the terms of its log nor in those up to that
// of the leader that let it in, also after another crash: the log's mark says so.
func TestOutdated_VotesInLaterTerms(t *testing.T) {
	for _, tc := range []struct{ own, leader, last uint64 }{{5, 8, 8}, {5, 3, 5}, {5, 5, 5}} {
		for _, above := range []uint64{0, 1} {
			c := newOutdated(t, tc.own)
			if c.stepAnswer(t, 2, &joinAnswer{nonce: 7, state: joinAdmitted, term: tc.leader}); c.Outdated() == "" {
				t.Fatal("let in before the log says that it is outdated")
			}
			mark := c.Admission.MarkAppend()
			if err := c.Persisted(mark.GetResponses()[0]); err != nil {
				t.Fatal(err)
			}
			if c.stepAnswer(t, 2, &joinAnswer{nonce: 6, state: joinAdmitted, term: tc.leader}); c.Outdated() == "" {
				t.Fatal("let in by the answer to an earlier life")
			}
			if c.stepAnswer(t, 2, &joinAnswer{nonce: 7, state: joinAdmitted, term: tc.leader}); c.Outdated() != "" {
				t.Fatal("not let in")
			}
			if got, want := c.Mark(), (Mark{Incarnation: 9, Term: tc.last, Vote: c.id}); got != want {
				t.Errorf("own term %d, leader's %d: the mark is %+v, want %+v", tc.own, tc.leader, got, want)
			}
			if want := above > 0; c.votes(t, tc.last+above) != want {
				t.Errorf("own term %d, leader's %d: its vote in term %d: want %v", tc.own, tc.leader, tc.last+above, want)
			}
		}
	}
}

// newOutdated returns a member with state that has just found out that it is outdated.
func newOutdated(t *testing.T, term uint64) *Core {
	t.Helper()
	conf := &raftpb.ConfState{Voters: []uint64{1, 2, 3}}
	storage := raft.NewMemoryStorage()
	if err := errors.Join(storage.ApplySnapshot(Snapshot(1, 1, conf)), storage.SetHardState(LogState{Term: term, Commit: 1}.HardState())); err != nil {
		t.Fatal(err)
	}
	c, err := New(Config{
		ID: 1, Incarnation: 9, Past: 4, Nonce: 7, Storage: storage, Meta: Meta{Member: 1, Level: Level4, Index: 1, Term: 1, Conf: conf},
		Retention: DefaultRetention(1 << 40), Random: func() uint64 { return 0 }, Logger: quiet,
	})
	if err != nil {
		t.Fatal(err)
	}
	if c.SeeOwnIncarnation(5); c.Outdated() == "" {
		t.Fatal("a request of a later start was applied, and the member is not outdated")
	}
	return c
}

// A member with a state, but with neither a vote nor a leader, says so to all every stateTicks.
func TestAdmission_SaysThatItHasAState(t *testing.T) {
	for _, tc := range []struct {
		what string
		do   func(c *Core)
		want int
	}{
		{"no leader", func(*Core) {}, 5},
		{"a leader", func(c *Core) { c.leader = 4 }, 0},
		{"a vote", func(c *Core) { c.conf = &raftpb.ConfState{Voters: []uint64{c.id}} }, 0},
		{"outdated, and the log does not say so", func(c *Core) { c.proof = "proof" }, 0},
	} {
		l, others := newLeader(t, 4, 1)
		c := l.w.members[others[2]-1].core
		c.Admission.SetPeers([]uint64{1, 2})
		c.leader, c.outbox = raft.None, nil
		tc.do(c)
		for range 5 * stateTicks {
			c.Admission.tick()
		}
		said, want := map[uint64]int{}, map[uint64]int{}
		if tc.want > 0 {
			want = map[uint64]int{1: tc.want, 2: tc.want}
		}
		for _, m := range c.outbox {
			if said[m.To]++; m.commit == nil || *m.commit != (commitNotice{c.applied, c.appliedTerm}) {
				t.Errorf("%s: it sends %+v", tc.what, m)
			}
		}
		if !maps.Equal(said, want) {
			t.Errorf("%s: said %v times, want %v", tc.what, said, want)
		}
	}
}
