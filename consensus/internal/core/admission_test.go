package core

import (
	"slices"
	"testing"

	"go.etcd.io/raft/v3"
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
	absent := &member{w: w, id: 4, cut: true, state: LogState{Term: 1, Commit: 1}, checkpoint: first}
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
