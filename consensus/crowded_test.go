package consensus

import (
	"iter"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// slowList takes half a minute to read a state after free was called.
type slowList struct {
	*list
	freed atomic.Bool
}

func (l *slowList) Restore(state iter.Seq2[[]byte, []byte]) (func(), error) {
	if l.freed.Load() {
		time.Sleep(30 * time.Second)
	}
	return l.list.Restore(state)
}

// TestCrowdedMemberAnswersWhileItReads: a member that receives a state for which there is no memory
// beside its own notices that while it arrives, and reads it when its own was dropped. Meanwhile it
// answers the leader.
func TestCrowdedMemberAnswersWhileItReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, away := t.TempDir(), -1
		slow := &slowList{}
		released, most := 0, int64(0)
		b := newBubbled(t, time.Millisecond, 10*time.Millisecond, func(i int, cfg *Config) {
			cfg.Dir = filepath.Join(dir, string(rune('a'+i)))
			cfg.CheckpointRequests, cfg.MemoryBytes = 10, 32<<10
			if i != away {
				return
			}
			slow.list, _ = cfg.StateMachine.(*list)
			cfg.StateMachine = slow
			cfg.Crowded = func(bytes int64, keys int) bool {
				most = max(most, bytes)
				return bytes > 1000 && keys > 10
			}
			cfg.Free = func() func() {
				slow.freed.Store(true)
				return func() { released++ }
			}
		})
		leader := b.leader()
		away = (leader + 1) % 3
		put := func() {
			done := make(chan struct{})
			b.members[leader].Propose(make([]byte, 100), func() { close(done) })
			<-done
		}
		put()
		b.end(away)
		for range 200 {
			put()
			time.Sleep(100 * time.Millisecond) // checkpoints are written
		}
		b.start(away)
		for range 100 {
			if time.Sleep(100 * time.Millisecond); slow.freed.Load() {
				break
			}
		}
		term := b.members[leader].Status().Term
		for range 250 {
			time.Sleep(100 * time.Millisecond)
			st := b.members[leader].Status()
			k := slices.IndexFunc(st.Peers, func(p PeerStatus) bool { return p.ID == uint64(away+1) })
			if !st.Leading || k < 0 || !st.Peers[k].Active || b.members[away].Status().Leader != uint64(leader+1) {
				t.Fatalf("the member does not answer, or the leader changed: %+v", st)
			}
			if n := len(b.lists[away].all()); n > 1 {
				t.Fatalf("the member has %d entries before it has read the state", n)
			}
		}
		put()
		time.Sleep(20 * time.Second)
		if !slices.Equal(b.lists[away].all(), b.lists[leader].all()) || b.members[leader].Status().Term != term {
			t.Errorf("the member has %d entries, the leader %d", len(b.lists[away].all()), len(b.lists[leader].all()))
		}
		if most > 2000 {
			t.Errorf("%d bytes were read beside the member's own state", most)
		}
		b.stop()
		if released != 1 {
			t.Errorf("released %d times", released)
		}
	})
}
