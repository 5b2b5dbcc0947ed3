package core

import (
	"bytes"
	"testing"
	"testing/cryptotest"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// answerRound gives a member the answer of another to a read round.
func (m *member) answerRound(from, index uint64, round []byte) {
	m.w.t.Helper()
	r := &raftpb.Message{
		Type: raftpb.MsgReadIndexResp.Enum(), To: &m.id, From: &from, Term: &m.core.raftTerm, Index: &index, Entries: []*raftpb.Entry{{Data: round}},
	}
	if err := m.core.Step(&Message{To: m.id, From: from, Raft: r}); err != nil {
		m.w.t.Fatal(err)
	}
	m.pump()
}

// asks requests a read, and returns the read round that the member asks for, which gets lost.
func (m *member) asks() []byte {
	m.w.t.Helper()
	m.read()
	m.pump()
	sent := m.w.net
	if m.w.net = nil; len(sent) != 1 || sent[0].Raft.GetType() != raftpb.MsgReadIndex {
		m.w.t.Fatalf("%v sent for a read", sent)
	}
	return sent[0].Raft.GetEntries()[0].GetData()
}

// Only the answer to the present round of the present life counts, and only that of the leader.
func TestRead_AnswersToOtherRounds(t *testing.T) {
	cryptotest.SetGlobalRandom(t, 1)
	w := newWorld(t, 1, 3)
	idle := func() bool { return w.leader() != nil && !w.busy() && w.equal() }
	w.calm(idle)
	l := w.leader()
	f, next := w.members[l.id%3], w.members[(l.id+1)%3]
	refused := func(what string, from *member, round []byte) {
		t.Helper()
		before := w.nReads
		if f.answerRound(from.id, 1, round); w.nReads != before {
			t.Errorf("%s answers a read round", what)
		}
	}
	first := f.asks()
	refused("another follower", next, first)
	l.core.raft.TransferLeader(next.id)
	l.pump()
	w.calm(func() bool { return idle() && w.leader() == next && w.nReads == 1 })
	if f.answerRound(next.id, f.applied, f.asks()); w.nReads != 2 {
		t.Error("the leader's answer does not count")
	}
	present := f.asks()
	refused("the answer under an earlier leader", next, first)
	others := bytes.Clone(present)
	others[7]++ // the id of the member that asks
	refused("the answer to another member's round", next, others)
	f.read() // the round began before: its answer may be older
	if f.answerRound(next.id, f.applied, present); w.nReads != 3 {
		t.Errorf("the answer to a round that began before a read: %d reads ran, want 3", w.nReads)
	}
	w.net = nil
	f.start()
	w.calm(func() bool { return idle() && f.core.Current() })
	if now := f.asks(); bytes.Equal(now, first) {
		t.Error("a round of a later life has the same bytes")
	}
	refused("the answer to an earlier life", next, first)
	if f.answerRound(next.id, f.applied, nil); w.nReads != 3 {
		t.Error("an answer without a round counts")
	}
}

// A leader that does not know yet what earlier terms committed answers nobody.
func TestRead_NewLeadersDoNotAnswer(t *testing.T) {
	w := newWorldWith(t, 1, 2, 1)
	l, learner := w.members[0], w.members[1]
	l.pump()
	for l.core.Tick(); l.core.role != raft.StateLeader; l.core.Tick() {
		l.write(len(l.queue))
		l.pump()
	}
	w.net = nil
	ask := &raftpb.Message{Type: raftpb.MsgReadIndex.Enum(), To: &l.id, From: &learner.id, Entries: []*raftpb.Entry{{Data: make([]byte, readContextBytes)}}}
	for _, want := range []int{0, 1} {
		if err := l.core.Step(&Message{To: l.id, From: learner.id, Raft: ask}); err != nil {
			t.Fatal(err)
		}
		l.pump()
		answers := 0
		for _, m := range w.net {
			if m.Raft.GetType() == raftpb.MsgReadIndexResp {
				answers++
			}
		}
		if answers != want {
			t.Errorf("a leader whose first entry is applied: %v; gave %d answers", l.core.Current(), answers)
		}
		for !l.core.Current() {
			l.write(len(l.queue))
			l.pump()
		}
		w.net = nil
	}
}
