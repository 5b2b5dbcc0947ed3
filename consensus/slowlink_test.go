package consensus

import (
	"context"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// slowConn takes a second for each rate bytes that are written to it, and counts them.
type slowConn struct {
	net.Conn
	rate  int
	bytes *atomic.Int64
}

func (c slowConn) Write(b []byte) (n int, err error) {
	for part := range slices.Chunk(b, 4<<10) {
		time.Sleep(time.Duration(len(part)) * time.Second / time.Duration(c.rate))
		m, err := c.Conn.Write(part)
		c.bytes.Add(int64(m))
		if n += m; err != nil {
			return n, err
		}
	}
	return n, nil
}

// On links on which a request takes longer than several election timeouts, the request is
// committed, whichever member proposes it, and the leader stays. Requests of all members at once
// are, too. The links carry a request alone as often as it is needed: once to the leader, and from
// there once to each follower.
func TestSlowLinks(t *testing.T) {
	const tick, megabyte = 50 * time.Millisecond, 1 << 20
	for _, rate := range []int{megabyte, megabyte / 4, megabyte / 20} {
		synctest.Test(t, func(t *testing.T) {
			var carried atomic.Int64
			b := newBubbled(t, time.Millisecond, tick, func(_ int, cfg *Config) {
				dial := cfg.PeerDial
				cfg.PeerDial = func(ctx context.Context, address string) (net.Conn, error) {
					conn, err := dial(ctx, address)
					if err != nil {
						return nil, err
					}
					return slowConn{conn, rate, &carried}, nil
				}
			})
			defer b.stop()
			leader := b.leader()
			before := b.members[leader].Status()
			propose := func(who ...int) {
				t.Helper()
				begin, committed := time.Now(), make(chan struct{}, len(who))
				carried.Store(0)
				needed := 0
				for _, i := range who {
					b.members[i].Propose(make([]byte, megabyte), func() { committed <- struct{}{} })
					if needed += 2 * megabyte; i != leader {
						needed += megabyte
					}
				}
				patience := time.After(10 * time.Minute)
				for range who {
					select {
					case <-committed:
					case <-patience:
						t.Fatalf("%d bytes per second: members %v wait for more than ten minutes", rate, who)
					}
				}
				took := time.Since(begin)
				time.Sleep(time.Minute) // what is sent again in vain is carried, too
				t.Logf("%d bytes per second: members %v waited for %v; %d bytes carried, %d needed",
					rate, who, took, carried.Load(), needed)
				most := int64(needed + needed/10)
				if len(who) > 1 { // the leader's answer waits behind others' requests, so some go out again
					most += int64(needed)
				}
				if carried.Load() > most {
					t.Errorf("%d bytes per second, members %v: %d bytes carried, want %d at most", rate, who, carried.Load(), most)
				}
				after := b.members[leader].Status()
				if !after.Leading || after.Term != before.Term || after.Since != before.Since {
					t.Fatalf("%d bytes per second, after members %v proposed: the leader changed: %+v", rate, who, after)
				}
			}
			for i := range b.members {
				propose(i)
			}
			propose(0, 1, 2)
		})
	}
}
