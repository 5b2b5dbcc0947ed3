package core

import (
	"fmt"
	"math"
	"testing"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// ensemble returns a world of three members at rest, with a leader, one of its followers, and a few
// applied requests.
func ensemble(t testing.TB) (w *world, leader, follower *member) {
	w = newWorld(t, 1, 3)
	w.calm(func() bool { return w.leader() != nil && w.leader().core.Current() })
	leader = w.leader()
	for range 3 {
		leader.propose()
	}
	leader.pump()
	w.calm(func() bool { return leader.answered == 3 && w.equal() })
	return w, leader, w.members[leader.id%3]
}

// forged returns a message with fields that its sender may have invented.
func forged(from, to *member, typ raftpb.MessageType, change func(m *raftpb.Message)) *Message {
	m := &raftpb.Message{Type: typ.Enum(), From: &from.id, To: &to.id, Term: new(to.core.raftTerm)}
	if change != nil {
		change(m)
	}
	return &Message{From: from.id, To: to.id, Raft: m}
}

// No message stops a member, moves its commit index beyond its log, or uses up the terms, and the
// ensemble goes on as before.
func TestStep_Nonsense(t *testing.T) {
	entry := func(index, term uint64, data []byte) *raftpb.Entry {
		return &raftpb.Entry{Type: raftpb.EntryNormal.Enum(), Index: &index, Term: &term, Data: data}
	}
	for _, c := range []struct {
		name     string
		toLeader bool
		typ      raftpb.MessageType
		change   func(m *raftpb.Message)
	}{
		{"vote of the last term", false, raftpb.MsgVote, func(m *raftpb.Message) { m.Term, m.Context = new(uint64(math.MaxUint64)), []byte("CampaignTransfer") }},
		{"vote of the last term", true, raftpb.MsgVote, func(m *raftpb.Message) { m.Term, m.Context = new(uint64(math.MaxUint64)), []byte("CampaignTransfer") }},
		{"vote of an absurd term", false, raftpb.MsgVote, func(m *raftpb.Message) {
			m.Term, m.Context = new(m.GetTerm()+maxTermJump+1), []byte("CampaignTransfer")
		}},
		{"heartbeat of the last term", false, raftpb.MsgHeartbeat, func(m *raftpb.Message) { m.Term = new(uint64(math.MaxUint64)) }},
		{"answer of the last term", true, raftpb.MsgAppResp, func(m *raftpb.Message) { m.Term = new(uint64(math.MaxUint64)) }},
		{"heartbeat without a term", false, raftpb.MsgHeartbeat, func(m *raftpb.Message) { m.Term, m.Commit = nil, new(uint64(1<<40)) }},
		{"heartbeat without a term", true, raftpb.MsgHeartbeat, func(m *raftpb.Message) { m.Term, m.Commit = nil, new(uint64(1<<40)) }},
		{"entries without a term", false, raftpb.MsgApp, func(m *raftpb.Message) { m.Term, m.Commit = nil, new(uint64(1<<40)) }},
		{"read round without a round", true, raftpb.MsgReadIndex, func(m *raftpb.Message) { m.Term = nil }},
		{"read round of another size", true, raftpb.MsgReadIndex, func(m *raftpb.Message) { m.Term, m.Entries = nil, []*raftpb.Entry{entry(0, 0, []byte("x"))} }},
		{"answer to no read round", true, raftpb.MsgHeartbeatResp, func(m *raftpb.Message) { m.Context = []byte{1} }},
		{"answer to a longer read round", true, raftpb.MsgHeartbeatResp, func(m *raftpb.Message) { m.Context = make([]byte, 9) }},
		{"acknowledgement of the future", true, raftpb.MsgAppResp, func(m *raftpb.Message) { m.Index = new(uint64(1 << 40)) }},
		{"entries with a gap", false, raftpb.MsgApp, func(m *raftpb.Message) {
			m.Index, m.LogTerm, m.Entries = new(uint64(5)), new(m.GetTerm()), []*raftpb.Entry{entry(60, m.GetTerm(), nil), entry(62, m.GetTerm(), nil)}
		}},
		{"entries at the end of numbers", false, raftpb.MsgApp, func(m *raftpb.Message) {
			m.Index, m.Entries = new(uint64(math.MaxUint64)), []*raftpb.Entry{entry(0, m.GetTerm(), nil)}
		}},
		{"entry that is no batch", false, raftpb.MsgApp, func(m *raftpb.Message) {
			last := uint64(math.MaxUint64)
			m.Index, m.LogTerm, m.Entries = &last, new(m.GetTerm()), []*raftpb.Entry{entry(0, m.GetTerm(), []byte{batchVersion, 0xff, 0xff})}
		}},
		{"change of the membership that is none", false, raftpb.MsgApp, func(m *raftpb.Message) {
			e := entry(0, m.GetTerm(), []byte{0xff, 0xff})
			e.Type = raftpb.EntryConfChangeV2.Enum()
			last := uint64(math.MaxUint64)
			m.Index, m.LogTerm, m.Entries = &last, new(m.GetTerm()), []*raftpb.Entry{e}
		}},
	} {
		t.Run(fmt.Sprintf("%s to leader=%v", c.name, c.toLeader), func(t *testing.T) {
			w, leader, follower := ensemble(t)
			from, to := leader, follower
			if c.toLeader {
				from, to = follower, leader
			}
			msg := forged(from, to, c.typ, c.change)
			if es := msg.Raft.GetEntries(); msg.Raft.GetIndex() == math.MaxUint64 && c.name != "entries at the end of numbers" {
				last, _ := to.storage.LastIndex()
				msg.Raft.Index, msg.Raft.Commit, es[0].Index = new(last), new(last+1), new(last+1)
			}
			before, last := to.core.raftTerm, to.applied
			if err := to.core.Step(msg); err != nil {
				t.Fatal(err)
			}
			to.pump()
			if to.core.raftTerm-before > maxTermJump || to.state.Term-before > maxTermJump {
				t.Fatalf("the term rose from %d to %d", before, to.core.raftTerm)
			}
			if to.applied != last || to.core.Refused() == 0 {
				t.Fatalf("applied %d after %d, %d messages refused", to.applied, last, to.core.Refused())
			}
			for _, m := range w.members {
				m.propose()
				m.pump()
			}
			w.calm(w.equal)
			for _, m := range w.members {
				if m.answered == 0 || m.core.Outdated() != "" {
					t.Errorf("member %d: %d requests answered, outdated: %q", m.id, m.answered, m.core.Outdated())
				}
			}
		})
	}
}

// A member that missed many elections follows a leader of a much later term.
func TestStep_ManyElections(t *testing.T) {
	w, leader, follower := ensemble(t)
	term := follower.core.raftTerm + maxTermJump/2
	msg := forged(leader, follower, raftpb.MsgVote, func(m *raftpb.Message) {
		m.Term, m.Index, m.LogTerm, m.Context = &term, new(leader.applied), new(leader.core.appliedTerm), []byte("CampaignTransfer")
	})
	if err := follower.core.Step(msg); err != nil {
		t.Fatal(err)
	}
	follower.pump()
	if follower.core.raftTerm != term {
		t.Fatalf("the term is %d, want %d", follower.core.raftTerm, term)
	}
	w.calm(func() bool { return w.leader() != nil && w.leader().core.raftTerm > term && w.equal() })
}

// No frame makes a member panic or stop, or moves its indexes out of order. The bytes are what a
// member that has proved who it is sends: first which member, and to whom.
func FuzzStep(f *testing.F) {
	term, index := uint64(2), uint64(5)
	for typ := range raftpb.MessageType_name {
		for to := range byte(3) {
			m := Message{From: 2, To: uint64(to) + 1, Raft: &raftpb.Message{Type: raftpb.MessageType(typ).Enum(), To: new(uint64(to) + 1), From: new(uint64(2)), Term: &term, Index: &index, Commit: &index,
				Context: make([]byte, 8), LogTerm: &term, Entries: []*raftpb.Entry{{Type: raftpb.EntryNormal.Enum(), Index: new(index + 1), Term: &term, Data: []byte{batchVersion, 1, 2, 3, 1, 1, 'x'}}}}}
			if frame, err := m.Encode(); err == nil {
				f.Add(append([]byte{1, to}, frame...))
			}
		}
	}
	for _, m := range []Message{
		{Forward: &RequestRun{Server: 2, Incarnation: 9, First: 1, Payloads: [][]byte{{'x'}, nil}}},
		{join: &joinRequest{1, 2}}, {join: &joinRequest{3, 0}}, {answer: &joinAnswer{1, joinAdmitted, 2, 3}}, {commit: &commitNotice{5, 2}},
	} {
		frame, err := m.Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(append([]byte{1, 0}, frame...))
		f.Add(append([]byte{1, 2}, frame...))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < 2 {
			return
		}
		w, _, _ := ensemble(t)
		from, to := w.members[b[0]%3], w.members[b[1]%3]
		msg, err := DecodeMessage(to.id, from.id, b[2:])
		if err != nil || from == to {
			return
		}
		c, before := to.core, to.core.raftTerm
		if err := c.Step(&msg); err != nil {
			t.Fatal(err)
		}
		for range 30 {
			out, err := c.Ready(w.nowMs)
			if err != nil && msg.Raft.GetType() == raftpb.MsgApp {
				return // an entry of a kind that this version does not know
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range out.Appends {
				if err := to.storage.Append(a.GetEntries()); err != nil {
					t.Fatal(err)
				}
				for _, r := range a.GetResponses() {
					if r.GetTo() == to.id {
						if err := c.Persisted(r); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			c.Tick()
		}
		last, err := to.storage.LastIndex()
		if err != nil {
			t.Fatal(err)
		}
		if c.applied > last || c.raftTerm < before || c.raftTerm-before > maxTermJump+30 || c.role == raft.StateLeader && c.leader != c.id {
			t.Fatalf("applied %d of %d entries, term %d after %d", c.applied, last, c.raftTerm, before)
		}
	})
}
