package core

import (
	"testing"
	"testing/cryptotest"

	"go.etcd.io/raft/v3"

	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
)

// Over links whose round trip is longer than any election timeout, a member comes to lead, and
// keeps the lead.
func TestTickScale_SlowLinks(t *testing.T) {
	for seed := range exhaustive.Or[uint64](6, 20) {
		cryptotest.SetGlobalRandom(t, seed)
		w := newWorld(t, seed, 3)
		type late struct {
			at int
			m  Message
		}
		var under []late
		const oneWay = 13 // ticks; an election timeout is 10 to 19
		led := 0
		for now := range 3000 {
			for _, m := range w.net {
				under = append(under, late{now + oneWay, m})
			}
			w.net = nil
			for len(under) > 0 && under[0].at <= now {
				w.net = append(w.net, under[0].m)
				under = under[1:]
				w.deliver(len(w.net) - 1)
			}
			leaders := 0
			for _, m := range w.members {
				m.core.Tick()
				m.pump()
				m.write(len(m.queue))
				m.pump()
				if m.core.role == raft.StateLeader && m.core.Current() {
					leaders = 1
				}
			}
			if now >= 2000 {
				led += leaders
			}
		}
		if led < 900 {
			t.Errorf("seed %d: a member leads in %d of the last 1000 ticks", seed, led)
		}
	}
}

// Silence does not slow the clock: when the others are back, an election takes no longer than
// before.
func TestTickScale_SilenceDoesNotSlow(t *testing.T) {
	cryptotest.SetGlobalRandom(t, 1)
	w := newWorld(t, 1, 3)
	for range 1000 {
		for _, m := range w.members {
			m.core.Tick()
			m.pump()
			m.write(len(m.queue))
			m.pump()
		}
		w.net = nil
	}
	for _, m := range w.members {
		if m.core.Clock.scale.factor != 0 {
			t.Errorf("member %d: raft's clock goes %d times slower", m.id, m.core.Clock.scale.factor)
		}
	}
}
