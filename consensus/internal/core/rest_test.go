package core

import "testing"

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
			if m.core.RestTicks() != want {
				return false
			}
		}
		return w.leader() != nil
	}
	w.calm(func() bool { return all(heartbeatTicks, maxRestTicks) })
	lead := w.leader()
	follower := w.members[lead.id%3]
	for name, happens := range map[string]func(){
		"a request":               follower.propose,
		"a request of the leader": lead.propose,
		"a read":                  follower.read,
		"a member that left": func() {
			follower.cut = true
			w.calm(func() bool { return !lead.core.ticks.rest.settled })
			follower.cut = false
		},
		"a log that hangs":        func() { lead.core.SetLogStalled(true) },
		"an entry from before it": func() { lead.core.applied--; lead.core.tickRest(); lead.core.applied++ },
	} {
		w.calm(func() bool { return all(heartbeatTicks, maxRestTicks) })
		happens()
		if n, m := lead.core.RestTicks(), follower.core.RestTicks(); n > 1 && m > 1 {
			t.Errorf("%s: the leader takes %d ticks together, a follower %d", name, n, m)
		}
		lead.core.SetLogStalled(false)
	}
	w.calm(func() bool { return all(heartbeatTicks, maxRestTicks) })
	lead.cut = true
	for i := range maxRestTicks {
		if n := follower.core.RestTicks(); n != maxRestTicks-i {
			t.Errorf("%d ticks after the last heartbeat: %d ticks are taken together", i, n)
		}
		follower.core.Tick()
	}
	if n := follower.core.RestTicks(); n != 1 {
		t.Errorf("the leader is silent: %d ticks are taken together", n)
	}
}
