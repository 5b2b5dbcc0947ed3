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
