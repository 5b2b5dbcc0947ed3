package consensus

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/consensus/internal/core"
)

// A request that comes while an entry is under way waits for BatchInterval, not for the end of that
// entry nor for a tick: wherever it comes from, even if no other request follows, and even if the
// clock is set meanwhile.
func TestProposalTimer_NoRequestWaitsForASlowEntry(t *testing.T) {
	const latency = 50 * time.Millisecond
	for name, tc := range map[string]struct {
		second time.Duration // when the second request comes
		jump   time.Duration // of the clock, right before
		from   int           // at which member, counted from the leader
		extra  time.Duration // on the way of a forwarded request
	}{
		"at once":            {},
		"soon":               {second: time.Millisecond},
		"late":               {second: 20 * time.Millisecond},
		"clock set back":     {second: time.Millisecond, jump: -time.Hour},
		"clock set ahead":    {second: time.Millisecond, jump: time.Hour},
		"later, set back":    {second: 20 * time.Millisecond, jump: -time.Hour},
		"through a follower": {from: 1, extra: 2 * latency},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var offset atomic.Int64
				now := func() time.Time { return time.Now().Add(time.Duration(offset.Load())) }
				b := newBubbled(t, latency, 5*time.Second, func(_ int, cfg *Config) { cfg.Now = now })
				defer b.stop()
				leader := b.leader()
				propose := func(m int) <-chan time.Duration {
					took, began := make(chan time.Duration, 1), time.Now()
					b.members[m].Propose([]byte("x"), func() { took <- time.Since(began) })
					return took
				}
				first := propose(leader)
				time.Sleep(tc.second)
				synctest.Wait()
				offset.Store(int64(tc.jump))
				second := propose((leader + tc.from) % 3)
				if took := <-first; took != 2*latency {
					t.Errorf("the first request takes %v", took)
				}
				if took, most := <-second, 2*latency+2*core.BatchInterval+tc.extra; took > most {
					t.Errorf("the second request takes %v, want %v at most", took, most)
				}
			})
		})
	}
}

// Two clients that wait for each of their requests are each as fast as a lone client.
func TestProposalTimer_TwoClientsDontTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const latency, requests = 25 * time.Millisecond, 100
		b := newBubbled(t, latency, 5*time.Second, nil)
		defer b.stop()
		n, ended := b.members[b.leader()], make(chan struct{})
		began := time.Now()
		for c := range 2 {
			go func() { // ends by itself, awaited below
				time.Sleep(time.Duration(c) * time.Millisecond)
				for range requests {
					done := make(chan struct{})
					n.Propose([]byte("x"), func() { close(done) })
					<-done
				}
				ended <- struct{}{}
			}()
		}
		<-ended
		<-ended
		if took, most := time.Since(began), requests*(2*latency+2*core.BatchInterval); took > most {
			t.Errorf("%d requests of each take %v, want %v at most", requests, took, most)
		}
	})
}

// A request that the loop took from the inbox before it began to delay, so that no proposer has
// started the timer, is not forgotten if the clock goes on within a turn.
func TestProposalTimer_TimePassesInATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const latency = 50 * time.Millisecond
		const (
			calm     = iota
			begins   // the next reading of the clock is that of the turn that makes the first entry
			proposed // the second request came right then
			waits    // the second was looked at
		)
		var state [3]atomic.Int32 // of the leader
		second := make(chan struct{})
		var b *bubbled
		b = newBubbled(t, latency, 5*time.Second, func(i int, cfg *Config) {
			cfg.Now = func() time.Time {
				now := time.Now()
				switch state[i].Load() { // runs on the loop's goroutine
				case begins:
					state[i].Store(proposed)
					b.members[i].Propose([]byte("second"), func() { close(second) })
				case proposed:
					if b.members[i].core.HasProposals() {
						state[i].Store(waits)
					}
				case waits:
					return now.Add(core.BatchInterval)
				}
				return now
			}
		})
		defer b.stop()
		leader := b.leader()
		state[leader].Store(begins)
		began := time.Now()
		b.members[leader].Propose([]byte("first"), func() {})
		<-second
		if took, most := time.Since(began), 2*latency+2*core.BatchInterval; took > most {
			t.Errorf("the second request takes %v, want %v at most", took, most)
		}
	})
}
