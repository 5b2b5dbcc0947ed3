package consensus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/internal/memnet"
	"github.com/gozkd/gozkd/internal/testkit/vfstest"
	"github.com/gozkd/gozkd/internal/vfs"
)

// bubbled are three members in a bubble of package synctest: time passes only while all wait.
type bubbled struct {
	t       *testing.T
	members [3]*Node
	lists   [3]*list
	cancels [3]context.CancelFunc
	done    chan error
	tick    time.Duration
	network *memnet.Network
	each    func(i int, cfg *Config) // may be nil
}

// newBubbled starts members with that network latency. each may change their configurations.
func newBubbled(t *testing.T, latency, tick time.Duration, each func(i int, cfg *Config)) *bubbled {
	b := &bubbled{t: t, tick: tick, done: make(chan error, 3), network: memnet.New(latency), each: each}
	for i := range b.members {
		b.start(i)
	}
	return b
}

func (b *bubbled) start(i int) {
	addresses, ids := map[uint64]string{}, []uint64{1, 2, 3}
	for _, id := range ids {
		addresses[id] = fmt.Sprintf("m%d:1", id)
	}
	id := ids[i]
	l, err := b.network.Listen(addresses[id])
	if err != nil {
		b.t.Fatal(err)
	}
	b.lists[i] = &list{}
	cfg := Config{
		ID: id, Voters: ids, StateMachine: b.lists[i], PeerListener: l, Tick: b.tick,
		PeerDial: func(ctx context.Context, address string) (net.Conn, error) {
			return b.network.Dial(ctx, fmt.Sprintf("m%d", id), address)
		},
	}
	if b.each != nil {
		b.each(i, &cfg)
	}
	n, err := Open(cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	n.SetMembers(addresses, nil)
	n.SetTarget(Target{Voters: ids})
	ctx, cancel := context.WithCancel(b.t.Context())
	b.members[i], b.cancels[i] = n, cancel
	go func() { b.done <- n.Run(ctx) }() // stopped by cancel and awaited by stop
}

// end stops one member.
func (b *bubbled) end(i int) {
	b.cancels[i]()
	if err := <-b.done; !errors.Is(err, ErrClosed) {
		b.t.Fatal(err)
	}
}

// leader returns the member that leads, once all follow and are at rest.
func (b *bubbled) leader() int {
	for range 1000 {
		leader := 0
		for _, n := range b.members {
			if s := n.Status(); !s.Current || s.Joining || !s.Voter || leader != 0 && s.Leader != uint64(leader) {
				leader = -1
				break
			} else {
				leader = int(s.Leader)
			}
		}
		if leader > 0 {
			time.Sleep(max(10*time.Second, 12*b.tick))
			return leader - 1
		}
		time.Sleep(time.Second)
	}
	b.t.Fatal("no member leads")
	return 0
}

func (b *bubbled) stop() {
	for _, cancel := range b.cancels {
		cancel()
	}
	for range b.members {
		if err := <-b.done; !errors.Is(err, ErrClosed) {
			b.t.Error(err)
		}
	}
}

// Followers with stalled disks answer the leader's heartbeats, so it goes on leading, and their
// reads run.
func TestStalledFollowersKeepTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stalled [3]atomic.Bool
		b := newBubbled(t, time.Millisecond, 10*time.Millisecond, func(i int, cfg *Config) {
			cfg.Dir = filepath.Join(t.TempDir(), "data")
			cfg.FS = vfstest.NewFaulty(vfs.OS{}, func(op vfstest.Op) error {
				if op.Kind == vfstest.OpSync && strings.Contains(op.Path, "wal") && stalled[i].Load() {
					time.Sleep(10 * time.Second)
				}
				return nil
			})
		})
		defer b.stop()
		leader := b.leader()
		before := b.members[leader].Status()
		for i := range stalled {
			stalled[i].Store(i != leader)
		}
		done, read := make(chan struct{}), make(chan struct{})
		b.members[leader].Propose([]byte("x"), func() { close(done) })
		time.Sleep(5 * time.Second)
		b.members[(leader+1)%3].Read(func() { close(read) })
		time.Sleep(time.Second)
		select {
		case <-read:
		default:
			t.Error("a follower's read waits for its disk")
		}
		if s := b.members[leader].Status(); !s.Leading || s.Since != before.Since {
			t.Errorf("the leader stepped down: %+v", s)
		}
		for i := range stalled {
			stalled[i].Store(false)
		}
		<-done
	})
}

// A member that was away is ready when it has applied what was committed when it found its leader,
// also if it knew that leader before, and whatever is committed meanwhile.
func TestReadyMeansCaughtUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memories := [3]Memory{}
		b := newBubbled(t, time.Millisecond, 10*time.Millisecond, func(i int, cfg *Config) { cfg.Memory = &memories[i] })
		defer b.stop()
		leader := b.leader()
		away := (leader + 1) % 3
		put := func() {
			done := make(chan struct{})
			b.members[leader].Propose([]byte("x"), func() { close(done) })
			<-done
		}
		put()
		b.end(away)
		const missed = 1000
		for range missed {
			put()
		}
		before := b.members[leader].Status()
		b.start(away)
		returned := make(chan struct{})
		go func() { // ends with returned, and is awaited
			defer close(returned)
			<-b.members[away].Ready()
			if has := len(b.lists[away].all()); has <= missed {
				t.Errorf("a member is ready with %d of more than %d requests", has, missed)
			}
		}()
		for waits := true; waits; put() { // the leader commits all the time
			select {
			case <-returned:
				waits = false
			default:
			}
		}
		if s := b.members[away].Status(); s.Term != before.Term || !s.Current {
			t.Errorf("the leader changed: %+v", s)
		}
	})
}
