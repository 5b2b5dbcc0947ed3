package core

import (
	"testing"

	"go.etcd.io/raft/v3"
)

// At rest a leader takes the ticks between two heartbeats together, and a follower those until the
// next heartbeat is late. Whatever happens ends the rest.
func TestRest(t *testing.T) {
	w := newWorld(t, 1, 3)
	all := func(leader, follower int) bool {
		for _, m := range w.members {
			want := follower
			if m == w.leader() {
				want = leader
			}
			if m.core.Clock.RestTicks() != want {
				return false
			}
		}
		return w.leader() != nil
	}
	w.calm(func() bool { return all(restHeartbeatTicks, maxRestTicks) })
	lead := w.leader()
	follower := w.members[lead.id%3]
	for name, happens := range map[string]func(){
		"a request":               follower.propose,
		"a request of the leader": lead.propose,
		"a read":                  follower.read,
		"a member that left": func() {
			follower.cut = true
			w.calm(func() bool { return !lead.core.Clock.rest.settled })
			follower.cut = false
		},
		"a log that hangs":        func() { lead.core.LogStall.Set(true) },
		"an entry from before it": func() { lead.core.applied--; lead.core.Clock.tickRest(); lead.core.applied++ },
	} {
		w.calm(func() bool { return all(restHeartbeatTicks, maxRestTicks) })
		happens()
		if n, m := lead.core.Clock.RestTicks(), follower.core.Clock.RestTicks(); n > 1 && m > 1 {
			t.Errorf("%s: the leader takes %d ticks together, a follower %d", name, n, m)
		}
		lead.core.LogStall.Set(false)
	}
	w.calm(func() bool { return all(restHeartbeatTicks, maxRestTicks) })
	lead.cut = true
	for i := range maxRestTicks {
		if n := follower.core.Clock.RestTicks(); n != maxRestTicks-i {
			t.Errorf("%d ticks after the last heartbeat: %d ticks are taken together", i, n)
		}
		follower.core.Tick()
	}
	if n := follower.core.Clock.RestTicks(); n != 1 {
		t.Errorf("the leader is silent: %d ticks are taken together", n)
	}
}

// A leader at rest sends a heartbeat each third tick, whatever the phase of raft's clock. With a
// stretched clock it sends as many as without rest. If the others fall silent, it steps down.
func TestRest_Heartbeats(t *testing.T) {
	for phase := range heartbeatTicks {
		w := newWorld(t, 1, 3)
		resting := func() bool { l := w.leader(); return l != nil && l.core.Clock.RestTicks() == restHeartbeatTicks }
		w.calm(resting)
		lead := w.leader()
		// tick reports whether the leader sends heartbeats.
		tick := func() bool {
			w.calm(func() bool { return true })
			for _, m := range w.members {
				m.core.Tick()
				m.pump()
			}
			return len(w.net) > 0
		}
		lead.propose() // ends the rest
		w.calm(func() bool { return !resting() })
		for range phase {
			lead.core.raft.Tick()
		}
		w.calm(resting)
		for silent, ticks := 0, 0; ticks < 3*ElectionTicks; ticks++ {
			if silent++; tick() {
				if ticks >= restHeartbeatTicks && silent != restHeartbeatTicks {
					t.Errorf("phase %d: a heartbeat after %d ticks", phase, silent)
				}
				silent = 0
			} else if silent >= restHeartbeatTicks+1 {
				t.Fatalf("phase %d: no heartbeat for %d ticks", phase, silent)
			}
		}
		lead.core.Clock.scale.factor = 2
		beats := 0
		for range 6 * heartbeatTicks {
			if tick() {
				beats++
			}
		}
		if beats != 3 {
			t.Errorf("phase %d: %d heartbeats in %d ticks of a clock at half speed", phase, beats, 6*heartbeatTicks)
		}
		lead.core.Clock.scale.factor = 0
		lead.cut = true
		ticks := 0
		for ; lead.core.role == raft.StateLeader; ticks++ {
			tick()
		}
		if ticks > 3*ElectionTicks {
			t.Errorf("phase %d: a leader that is cut off steps down after %d ticks", phase, ticks)
		}
	}
}

// How many ticks are taken together, by what the ensemble does.
func TestClock_RestTicks(t *testing.T) {
	for _, tc := range []struct {
		what string
		do   func(k *Clock)
		want int
	}{
		{"a follower", func(*Clock) {}, maxRestTicks},
		{"the leader is silent for a tick", func(k *Clock) { k.leaderSilence = 1 }, maxRestTicks - 1},
		{"the leader is silent", func(k *Clock) { k.leaderSilence = maxRestTicks + 3 }, 1},
		{"something happened", func(k *Clock) { k.rest.quiet = ElectionTicks - 1 }, 1},
		{"an entry was applied", func(k *Clock) { k.applied++ }, 1},
		{"something happens", func(k *Clock) { k.quiet = func() bool { return false } }, 1},
		{"a leader", func(k *Clock) { k.role = raft.StateLeader }, 1},
		{"a leader with all members", func(k *Clock) { k.role, k.rest.settled = raft.StateLeader, true }, restHeartbeatTicks},
	} {
		k := &Clock{raftState: &raftState{applied: 5}, quiet: func() bool { return true }, rest: rest{applied: 5, quiet: ElectionTicks, beat: 1}}
		tc.do(k)
		if got := k.RestTicks(); got != tc.want {
			t.Errorf("%s: %d ticks", tc.what, got)
		}
		holds, leads := k.holdsTick(), tc.want == restHeartbeatTicks
		if holds || leads && k.rest.beat != 2 || !leads && k.rest.beat != 0 {
			t.Errorf("%s: holds %v, beat %d", tc.what, holds, k.rest.beat)
		}
		if leads && (!k.holdsTick() || k.rest.beat != 0 || k.holdsTick()) {
			t.Errorf("%s: not every third tick is held", tc.what)
		}
	}
	l, others := newLeader(t, 3, 0)
	k := l.core.Clock
	for _, tc := range []struct {
		what           string
		do             func()
		quiet          int
		settled, after bool
	}{
		{"all are there", func() {}, 8, true, true},
		{"a request", func() { l.core.own.pending = make([]pendingRequest, 1) }, 0, false, true},
		{"an entry is applied", func() { k.rest.applied-- }, 0, false, true},
		{"a follower", func() { k.role = raft.StateFollower }, 8, false, true},
		{"a member has not been heard for a while", func() { k.membership.silentTicks[others[0]] = maxRestTicks }, 8, true, true},
		{"a member is silent", func() { k.membership.silentTicks[others[0]] = maxRestTicks + 1 }, 8, false, false},
	} {
		k.membership.silentTicks[others[0]] = 0
		l.core.own.pending, k.role = nil, raft.StateLeader
		k.rest = rest{applied: k.applied, quiet: 7}
		tc.do()
		if k.tickRest(); k.rest.quiet != tc.quiet || k.rest.settled != tc.settled || k.rest.applied != k.applied {
			t.Errorf("%s: %+v", tc.what, k.rest)
		}
		l.core.own.pending, k.role = nil, raft.StateLeader
		if k.tickRest(); k.rest.settled != tc.after {
			t.Errorf("%s, then nothing: %+v", tc.what, k.rest)
		}
	}
	applied := k.applied
	k.membership.silentTicks[others[0]] = 0
	k.applied++
	k.rest = rest{applied: k.applied, quiet: 7}
	if k.tickRest(); k.rest.settled {
		t.Error("members lack an entry, and the leader rests")
	}
	k.applied = applied
}
