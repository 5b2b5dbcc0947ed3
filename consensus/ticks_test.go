package consensus

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Members at rest sleep through most ticks, and notice as soon as others that the leader is gone.
func TestRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const tick, seconds = 50 * time.Millisecond, 10
		var turns [3]atomic.Int64
		b := newBubbled(t, time.Millisecond, tick, func(i int, cfg *Config) {
			cfg.Now = func() time.Time { turns[i].Add(1); return time.Now() }
		})
		defer b.stop()
		leader := b.leader()
		before := b.members[leader].Status()
		for i := range turns {
			turns[i].Store(0)
		}
		time.Sleep(seconds * time.Second)
		for i := range turns {
			// One heartbeat per three ticks: its turn, and the turn that finds nothing left to do.
			if n, most := turns[i].Load(), int64(seconds*time.Second/(3*tick)*2+2); n > most {
				t.Errorf("member %d: %d turns in %d s, want at most %d", i+1, n, seconds, most)
			}
		}
		if s := b.members[leader].Status(); !s.Leading || s.Since != before.Since {
			t.Fatal("the leader stepped down")
		}
		for i := range b.members {
			for _, ends := range [][2]int{{leader, i}, {i, leader}} {
				b.network.Cut(fmt.Sprintf("m%d", ends[0]+1), fmt.Sprintf("m%d", ends[1]+1), i != leader)
			}
		}
		began := time.Now()
		for b.members[(leader+1)%3].Status().Leader+b.members[(leader+2)%3].Status().Leader == 2*before.Leader {
			time.Sleep(tick)
		}
		if took := time.Since(began); took < 7*tick || took > 20*tick { // the election timeout is 10 to 19 ticks, and begins with a heartbeat
			t.Errorf("the first follower campaigns after %v", took)
		}
	})
}

// The ticks of a loop that stood still do not count: what others sent in that time is not read yet.
func TestTickClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const period = 50 * time.Millisecond
		c := newTickClock(period)
		for _, step := range []struct {
			sleep  int
			passes time.Duration
			want   int
		}{
			{1, period - 1, 0}, {1, 1, 1}, {1, period * 3 / 2, 1}, {4, period / 2, 1}, {4, period * 5 / 2, 2},
			{4, period / 2, 1}, {4, 100 * period, 4}, {1, period * 2, 1}, {1, period, 1}, {1, period * 5 / 2, 1}, {1, period / 2, 1},
		} {
			c.sleep(step.sleep)
			time.Sleep(step.passes)
			if got := c.passed(); got != step.want {
				t.Errorf("%+v: %d ticks", step, got)
			}
		}
		c.sleep(2)
		began := time.Now()
		<-c.timer.C
		if slept := time.Since(began); slept != 2*period {
			t.Errorf("slept %v", slept)
		}
	})
}
