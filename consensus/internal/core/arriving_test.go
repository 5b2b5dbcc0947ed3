package core

import (
	"testing"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// silence lets time pass in which no message arrives as a whole. parts is called before each tick.
func (w *world) silence(t *testing.T, ticks int, parts func(m *member) error) {
	t.Helper()
	for range ticks {
		for _, m := range w.members {
			if err := parts(m); err != nil {
				t.Fatal(err)
			}
			m.core.Tick()
			m.pump()
			m.write(len(m.queue))
			m.pump()
		}
		w.net = nil
	}
}

// A leader and followers that get parts of each other's messages go on as before. Followers that
// get parts of each other's messages alone do not.
func TestArriving(t *testing.T) {
	w, leader, _ := ensemble(t)
	term := leader.core.raftTerm
	w.silence(t, 10*ElectionTicks, func(m *member) error {
		if m == leader {
			return m.core.Clock.Arriving(m.id%3 + 1)
		}
		return m.core.Clock.Arriving(leader.id)
	})
	for _, m := range w.members {
		if m.core.raftTerm != term || m.core.leader != leader.id || m.core.Clock.leaderSilence > 1 && m != leader {
			t.Errorf("member %d follows %d in term %d, has not heard it for %d ticks; want %d in term %d",
				m.id, m.core.leader, m.core.raftTerm, m.core.Clock.leaderSilence, leader.id, term)
		}
	}
	w.silence(t, 10*ElectionTicks, func(m *member) error {
		if m == leader {
			return nil
		}
		return m.core.Clock.Arriving(6 - leader.id - m.id)
	})
	for _, m := range w.members {
		if m.core.role == raft.StateLeader || m.core.leader != raft.None {
			t.Errorf("member %d, role %v, follows %d", m.id, m.core.role, m.core.leader)
		}
	}
}

// A probe that its member says it is receiving is not sent again.
func TestArriving_Probe(t *testing.T) {
	for _, c := range []struct {
		context []byte
		want    int
	}{{nil, 1}, {[]byte{1, 0, 0, 0, 0, 0, 0, 0}, 1}, {receiving[:], 7}} {
		_, leader, follower := ensemble(t)
		p := &leader.core.LogStall.probes
		p.last, p.ticks = map[uint64]probe{follower.id: {5, 1}}, 7
		answer := forged(follower, leader, raftpb.MsgHeartbeatResp, func(m *raftpb.Message) { m.Context = c.context })
		if err := leader.core.Step(answer); err != nil {
			t.Fatal(err)
		}
		if got := p.last[follower.id]; got != (probe{5, c.want}) {
			t.Errorf("context %v: %+v, want tick %d", c.context, got, c.want)
		}
	}
	_, leader, follower := ensemble(t)
	delete(leader.core.LogStall.probes.last, follower.id)
	leader.core.LogStall.noteReceiving(follower.id)
	if p, noted := leader.core.LogStall.probes.last[follower.id]; noted {
		t.Errorf("a probe that was never sent is noted: %+v", p)
	}
}
