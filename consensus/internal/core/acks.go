package core

import "go.etcd.io/raft/v3/raftpb"

// Acks holds back answers that would tell the leader nothing, and wake it for nothing. Raft answers
// every append. When an entry is committed, the leader says so in an append without entries, and
// the answer repeats how far this member's log goes. Such a repetition goes with the next tick, in
// case the leader did not get the first answer; a later answer takes its place.
type Acks struct {
	*raftState
	to, term, index uint64          // of the last answer that was sent
	held            *raftpb.Message // repeats it; nil: none
}

// Held reports whether an answer to an append need not be sent now.
func (a *Acks) Held(m *raftpb.Message) bool {
	if m.GetType() != raftpb.MsgAppResp || m.GetReject() {
		return false
	}
	if m.GetTo() == a.to && m.GetTerm() == a.term && m.GetIndex() <= a.index {
		a.held = m
		return true
	}
	a.to, a.term, a.index, a.held = m.GetTo(), m.GetTerm(), m.GetIndex(), nil
	return false
}

// tick sends the answer that was held back.
func (a *Acks) tick() {
	if a.held != nil {
		a.send(Message{To: a.held.GetTo(), Raft: a.held})
		a.held = nil
	}
}

// forget is called when answers to a member may be lost.
func (a *Acks) forget(member uint64) {
	if member == a.to {
		a.tick()
		a.term = 0
	}
}
