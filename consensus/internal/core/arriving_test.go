package core

import (
	"errors"
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
			return m.core.Arriving(m.id%3 + 1)
		}
		return m.core.Arriving(leader.id)
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
		return m.core.Arriving(6 - leader.id - m.id)
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

// A request that is arriving at the leader is not sent again, however long that takes, and neither
// is one that is in the leader's log. A heartbeat that says so is answered like any other.
func TestArriving_Forwarded(t *testing.T) {
	for what, c := range map[string]struct {
		part  func(leader, follower *member) error
		after int // ticks until the request is sent again; 0: never
	}{
		"nothing":                      {func(*member, *member) error { return nil }, ElectionTicks},
		"a part comes to the leader":   {tellSender, 0},
		"a part comes to the follower": {func(l, f *member) error { return f.core.Arriving(l.id) }, maxRetryTicks},
		"a part of another follower": {
			func(l, f *member) error { return f.core.Arriving(6 - l.id - f.id) }, ElectionTicks,
		},
		"it is in the log":             {logged(0, 0), 0},
		"it is in another log":         {logged(1, 0), ElectionTicks},
		"the one before is in the log": {logged(0, 1), ElectionTicks},
	} {
		_, leader, follower := ensemble(t)
		o := &follower.core.own
		follower.core.Propose([]byte("x"), nil)
		o.sent, o.firstSeen, o.idle, o.retryAfter = 1, o.first, 0, ElectionTicks
		again := 0
		for tick := 1; tick <= 20*ElectionTicks && again == 0; tick++ {
			if err := c.part(leader, follower); err != nil {
				t.Fatal(err)
			}
			if follower.core.tickStreams(); o.resent > 0 {
				again = tick
			}
		}
		if again != c.after {
			t.Errorf("%s: sent again after %d ticks, want %d", what, again, c.after)
		}
	}
}

// logged lets the leader tell the follower once that its first request is in the log. incarnation
// is added to that of the request, and before is subtracted from its number.
func logged(incarnation, before uint64) func(leader, follower *member) error {
	told := false
	return func(leader, follower *member) error {
		if told {
			return nil
		}
		told = true
		o := &follower.core.own
		leader.core.proposer.heads[follower.id] = StreamPosition{o.incarnation + incarnation, o.first - before}
		return tellSender(leader, follower)
	}
}

// tellSender lets a part of a message of a follower come to the leader, and the follower be told.
func tellSender(leader, follower *member) error {
	leader.core.outbox = nil
	if err := leader.core.Arriving(follower.id); err != nil {
		return err
	}
	for _, m := range leader.core.outbox {
		if err := follower.core.Step(&m); err != nil {
			return err
		}
		if m.Raft.Context != nil {
			return errors.New("the answer would say that a message is arriving")
		}
	}
	leader.core.outbox = nil
	return nil
}

// A leader tells only members of the ensemble.
func TestArriving_Stranger(t *testing.T) {
	_, leader, _ := ensemble(t)
	leader.core.outbox = nil
	if err := leader.core.Arriving(99); err != nil || len(leader.core.outbox) > 0 {
		t.Errorf("%v, %d messages", err, len(leader.core.outbox))
	}
}

// While a message of its relay arrives, a learner keeps the relay. TestRelays_Feeds and
// TestRelays_Leases have what the relay and the leader do.
func TestArriving_Relay(t *testing.T) {
	for _, parts := range []bool{true, false} {
		m := &raftState{id: 4, leader: 1, applied: 7, raftTerm: 1}
		rel := &Relays{raftState: m, source: relaySource{id: 2, active: true, reported: 7}}
		for range 2 * relayPatience {
			rel.source.silence, rel.source.arriving = rel.source.silence+1, false
			if parts {
				rel.arriving(2)
			}
			rel.arriving(3)
		}
		if kept := rel.source.silence == 0; kept != parts || rel.source.arriving != parts {
			t.Errorf("parts %v: the relay counts as silent for %d ticks: %+v", parts, rel.source.silence, rel.source)
		}
	}
}
