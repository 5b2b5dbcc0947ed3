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
}

// newBubbled starts members with that network latency. each may change their configurations.
func newBubbled(t *testing.T, latency, tick time.Duration, each func(i int, cfg *Config)) *bubbled {
	network := memnet.New(latency)
	b := &bubbled{t: t, tick: tick, done: make(chan error, 3), network: network}
	addresses, ids := map[uint64]string{}, []uint64{1, 2, 3}
	for _, id := range ids {
		addresses[id] = fmt.Sprintf("m%d:1", id)
	}
	for i, id := range ids {
		l, err := network.Listen(addresses[id])
		if err != nil {
			t.Fatal(err)
		}
		b.lists[i] = &list{}
		cfg := Config{
			ID: id, Voters: ids, StateMachine: b.lists[i], PeerListener: l, Tick: tick,
			PeerDial: func(ctx context.Context, address string) (net.Conn, error) {
				return network.Dial(ctx, fmt.Sprintf("m%d", id), address)
			},
		}
		if each != nil {
			each(i, &cfg)
		}
		n, err := Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		n.SetMembers(addresses)
		n.SetTarget(Target{Voters: ids})
		ctx, cancel := context.WithCancel(t.Context())
		b.members[i], b.cancels[i] = n, cancel
		go func() { b.done <- n.Run(ctx) }() // stopped by cancel and awaited by stop
	}
	return b
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
