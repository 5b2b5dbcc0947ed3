package core

import (
	"testing"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// relayWorld returns an ensemble of three voters and a learner that has a relay.
func relayWorld(t *testing.T) (w *world, lead, learner, relay *member) {
	w = newWorldWith(t, 1, 4, 1)
	for _, m := range w.members {
		for _, o := range w.members {
			if o != m {
				m.core.Reachable(o.id)
			}
		}
	}
	learner = w.members[3]
	w.calm(func() bool { return w.leader() != nil && learner.core.Relays.Source() != 0 })
	w.ticks(6) // the leader is told
	return w, w.leader(), learner, w.members[learner.core.Relays.Source()-1]
}

// ticks lets time pass, with everything delivered and written.
func (w *world) ticks(n int) {
	for range n {
		passed := false
		w.calm(func() bool { defer func() { passed = true }(); return passed })
	}
}

// appends delivers what is under way, while members propose, and counts the entries that come to a
// member, by sender.
func (w *world) appends(to *member, rounds int, proposers ...*member) map[uint64]int {
	from := make(map[uint64]int)
	for range rounds {
		for _, m := range proposers {
			m.propose()
			m.pump()
		}
		for i := 0; i < 10_000 && w.busy(); i++ {
			if len(w.net) > 0 {
				if m := w.net[0]; m.To == to.id && m.Raft.GetType() == raftpb.MsgApp {
					from[m.From] += len(m.Raft.GetEntries())
				}
				w.deliver(0)
			}
			for _, m := range w.members {
				if !m.slow {
					m.write(len(m.queue))
				}
				m.pump()
			}
			if len(w.net) == 0 {
				break
			}
		}
		for _, m := range w.members {
			m.core.Tick()
			m.pump()
		}
	}
	return from
}

// The relay sends a learner the entries, and the leader does not.
func TestRelay_SparesTheLeader(t *testing.T) {
	w, lead, learner, relay := relayWorld(t)
	if relay == lead {
		t.Fatal("the leader is the relay")
	}
	from := w.appends(learner, 50, lead, learner)
	if from[lead.id] != 0 || from[relay.id] < 50 {
		t.Errorf("entries by sender: %v; the leader is %d, the relay %d", from, lead.id, relay.id)
	}
	if got := relay.core.Relays.Learners(); len(got) != 1 || got[0] != learner.id || !lead.core.Relays.Leased(learner.id) {
		t.Errorf("the relay has learners %v, the leader a lease: %v", got, lead.core.Relays.Leased(learner.id))
	}
	if learner.answered < 40 {
		t.Errorf("%d of the learner's requests were applied", learner.answered)
	}
}

// A learner whose relay is cut off leaves it before the leader has to help, takes another one, and
// misses nothing.
func TestRelay_CutOff(t *testing.T) {
	w, lead, learner, relay := relayWorld(t)
	relay.cut = true
	w.appends(learner, relayPatience+2, lead)
	if now := learner.core.Relays.Source(); now == relay.id {
		t.Errorf("the relay is still %d, which has been silent for %d ticks", now, relayPatience+2)
	}
	w.appends(learner, 3*ElectionTicks, lead)
	if now := learner.core.Relays.Source(); now == relay.id || learner.applied+5 < lead.applied {
		t.Errorf("the relay is %d, before %d; the learner has applied %d entries, the leader %d", now, relay.id, learner.applied, lead.applied)
	}
}

// The leader sends entries itself if a relay answers, and is behind.
func TestRelay_Behind(t *testing.T) {
	w, lead, learner, relay := relayWorld(t)
	relay.slow = true
	w.appends(learner, 3*ElectionTicks, lead)
	if learner.applied+5 < lead.applied || relay.applied+20 > lead.applied {
		t.Errorf("applied: %d by the learner, %d by its relay, %d by the leader", learner.applied, relay.applied, lead.applied)
	}
}

// A learner takes entries only from the voter that it asked, and only in the term of its leader.
func TestRelay_Strangers(t *testing.T) {
	_, lead, learner, relay := relayWorld(t)
	last, err := learner.storage.LastIndex()
	if err != nil {
		t.Fatal(err)
	}
	term, err := learner.storage.Term(last)
	if err != nil {
		t.Fatal(err)
	}
	other := 6 - lead.id - relay.id // of the voters 1, 2 and 3
	for name, c := range map[string]struct{ from, term uint64 }{
		"another voter": {other, learner.core.RaftTerm()}, "a later term": {relay.id, learner.core.RaftTerm() + 1}, "an earlier term": {relay.id, learner.core.RaftTerm() - 1},
	} {
		m := Message{To: learner.id, From: c.from, Raft: &raftpb.Message{
			Type: raftpb.MsgApp.Enum(), To: &learner.id, From: &c.from, Term: &c.term, Index: &last, LogTerm: &term, Context: []byte{relayed},
			Entries: []*raftpb.Entry{{Index: new(last + 1), Term: &term}},
		}}
		before := learner.core.RaftTerm()
		if err := learner.core.Step(&m); err != nil {
			t.Fatal(err)
		}
		learner.pump()
		if len(learner.queue) > 0 || learner.core.Leader() != lead.id || learner.core.RaftTerm() != before {
			t.Errorf("%s: the learner appends %d times, its leader is %d and its term %d", name, len(learner.queue), learner.core.Leader(), learner.core.RaftTerm())
		}
	}
}

// A relay sends little to a learner whose log hangs: such a learner reports, and drops all entries.
func TestRelay_HungLearner(t *testing.T) {
	const entries, learner = 40, 4
	m := &raftState{
		id: 2, leader: 1, raftTerm: 1, appliedTerm: 1, applied: entries, storage: raft.NewMemoryStorage(),
		conf: &raftpb.ConfState{Voters: []uint64{1, 2, 3}, Learners: []uint64{learner}},
	}
	relay := &Relays{raftState: m, stall: &LogStall{raftState: m}}
	data := make([]byte, maxBatchBytes)
	for i := range uint64(entries) {
		if err := m.storage.Append([]*raftpb.Entry{{Index: new(i + 1), Term: new(uint64(1)), Data: data}}); err != nil {
			t.Fatal(err)
		}
	}
	sent := func(have uint64, ticks int) (n, last int) {
		for range ticks {
			relay.feedRequested(learner, have, []byte{relayed})
			var out Output
			relay.feedLearners(&out)
			for _, msg := range out.Messages {
				n += len(msg.Raft.GetEntries())
				last = int(msg.Raft.GetIndex()) + len(msg.Raft.GetEntries())
			}
			relay.tick()
		}
		return n, last
	}
	const window, periods = relayWindow / maxBatchBytes, 20
	if n, _ := sent(1, periods*(relayPatience+1)); n < window+periods/2 || n > 2*window+2*periods {
		t.Errorf("%d entries of %d bytes were sent to a learner that acknowledges nothing", n, maxBatchBytes)
	}
	for have := uint64(2); have < entries; { // the log goes on
		n, last := sent(have, 1)
		if n == 0 && last == int(have) {
			t.Fatalf("the relay stops after entry %d", have)
		}
		have = min(have+window, uint64(max(last, int(have)+1)))
	}
}

// A leader forgets the lease of a learner that was removed: it may come back without its log.
func TestRelay_LeaseOfRemoved(t *testing.T) {
	w, lead, _, _ := relayWorld(t)
	const removed = 99
	lead.core.Relays.noteLease(removed, []byte{relayed})
	w.ticks(1)
	if lead.core.Relays.leases[removed] != nil {
		t.Error("the leader keeps a lease of a member that is none")
	}
}
