package consensus

import (
	"context"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// slowConn takes a second for each rate bytes that are written to it.
type slowConn struct {
	net.Conn
	rate int
}

func (c slowConn) Write(b []byte) (n int, err error) {
	for part := range slices.Chunk(b, 4<<10) {
		time.Sleep(time.Duration(len(part)) * time.Second / time.Duration(c.rate))
		m, err := c.Conn.Write(part)
		if n += m; err != nil {
			return n, err
		}
	}
	return n, nil
}

// On links on which a request takes longer than several election timeouts, the request is
// committed, whichever member proposes it, and the leader stays. Requests of all members at once
// are, too.
func TestSlowLinks(t *testing.T) {
	const tick, megabyte = 10 * time.Millisecond, 1 << 20
	for _, rate := range []int{5 * megabyte, megabyte} {
		synctest.Test(t, func(t *testing.T) {
			b := newBubbled(t, time.Millisecond, tick, func(_ int, cfg *Config) {
				dial := cfg.PeerDial
				cfg.PeerDial = func(ctx context.Context, address string) (net.Conn, error) {
					conn, err := dial(ctx, address)
					if err != nil {
						return nil, err
					}
					return slowConn{conn, rate}, nil
				}
			})
			defer b.stop()
			leader := b.leader()
			before := b.members[leader].Status()
			propose := func(who ...int) {
				t.Helper()
				begin, committed := time.Now(), make(chan struct{}, len(who))
				for _, i := range who {
					b.members[i].Propose(make([]byte, megabyte), func() { committed <- struct{}{} })
				}
				patience := time.After(time.Minute)
				for range who {
					select {
					case <-committed:
					case <-patience:
						t.Fatalf("%d bytes per second: requests of the members %v are not committed after a minute", rate, who)
					}
				}
				after := b.members[leader].Status()
				if !after.Leading || after.Term != before.Term || after.Since != before.Since {
					t.Fatalf("%d bytes per second, %v after members %v proposed: the leader changed: %+v",
						rate, time.Since(begin), who, after)
				}
			}
			for i := range b.members {
				propose(i)
			}
			propose(0, 1, 2)
		})
	}
}
