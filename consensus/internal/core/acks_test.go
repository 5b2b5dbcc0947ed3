package core

import (
	"testing"

	"go.etcd.io/raft/v3/raftpb"
)

// An answer that repeats the last one to the same leader goes with the next tick, or not at all if
// another goes before. Everything else goes at once.
func TestAcks(t *testing.T) {
	answer := func(typ raftpb.MessageType, to, term, index uint64, reject bool) *raftpb.Message {
		return &raftpb.Message{Type: &typ, To: &to, Term: &term, Index: &index, Reject: &reject}
	}
	ack := func(to, term, index uint64) *raftpb.Message { return answer(raftpb.MsgAppResp, to, term, index, false) }
	held := func(a *Acks, m *raftpb.Message, want bool) {
		t.Helper()
		if got := a.Held(m); got != want {
			t.Errorf("%v is held: %v, want %v", m, got, want)
		}
	}
	ticks := func(a *Acks, want ...*raftpb.Message) {
		t.Helper()
		a.tick()
		if len(a.outbox) != len(want) {
			t.Fatalf("%d messages with a tick, want %d", len(a.outbox), len(want))
		}
		for i, m := range a.outbox {
			if m.Raft != want[i] || m.To != want[i].GetTo() || m.From != 2 {
				t.Errorf("message %d is %+v, want %v", i, m, want[i])
			}
		}
		a.outbox = nil
	}
	a := &Acks{raftState: &raftState{id: 2}}
	held(a, ack(1, 5, 0), false)
	held(a, ack(1, 5, 10), false)
	repeated := ack(1, 5, 10)
	held(a, ack(1, 5, 9), true)
	held(a, repeated, true)
	held(a, answer(raftpb.MsgAppResp, 1, 5, 10, true), false)
	held(a, answer(raftpb.MsgHeartbeatResp, 1, 5, 10, false), false)
	ticks(a, repeated)
	ticks(a)
	held(a, ack(1, 5, 10), true)
	held(a, ack(1, 5, 11), false)
	ticks(a) // the later answer took the place of the repetition
	held(a, ack(1, 6, 11), false)
	held(a, ack(3, 6, 11), false)
	held(a, ack(3, 6, 11), true)

	last := ack(3, 6, 11)
	held(a, last, true)
	a.forget(1)
	held(a, last, true)
	a.forget(3) // the connection is new: what was said may be lost
	held(a, ack(3, 6, 11), false)
	ticks(a, last)
	held(a, ack(3, 1, 5), false)
	a.forget(3)
	held(a, ack(3, 1, 5), false) // in the first term, too
}
