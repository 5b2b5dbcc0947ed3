package zktest_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/zktest"
)

type silent struct{}

func (silent) Printf(string, ...any) {}

var errAway = errors.New("away")

// once is a zk.HostProvider and zk.Dialer for a single connection.
type once struct {
	dial zk.Dialer
	used atomic.Bool
}

func (*once) Init([]string) error    { return nil }
func (*once) Len() int               { return 1 }
func (*once) Connected()             {}
func (o *once) Next() (string, bool) { return "any:1", o.used.Load() } // true makes the client pause

func (o *once) connect(network, address string, timeout time.Duration) (net.Conn, error) {
	if o.used.Load() {
		return nil, errAway
	}
	c, err := o.dial(network, address, timeout)
	if err == nil {
		o.used.Store(true)
	}
	return c, err
}

// mute returns a client with a session that does not reconnect. If the connection ends before there
// is a session, as it may on a slow machine, another client takes its place.
func mute(t *testing.T, s *zktest.Service, timeout time.Duration) *zk.Conn {
	t.Helper()
	first, _, _ := strings.Cut(s.ConnectString(), ",")
	dial := s.Dialer()
	for {
		o := &once{dial: func(network, _ string, timeout time.Duration) (net.Conn, error) { return dial(network, first, timeout) }}
		c, events, err := zk.Connect([]string{"any:1"}, timeout, zk.WithLogger(silent{}), zk.WithHostProvider(o), zk.WithDialer(o.connect))
		if err != nil {
			t.Fatal(err)
		}
		for e := range events {
			if e.State == zk.StateHasSession {
				t.Cleanup(c.Close)
				return c
			}
			if e.State == zk.StateDisconnected {
				break
			}
		}
		c.Close()
	}
}

// A new leader gives every session its full timeout, but not for time that passes after its
// election.
func TestAdvance_RightAfterElection(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		e := zktest.StartEnsemble(t, 3)
		for range exhaustive.Or(3, 8) {
			away := mute(t, e.Service, 10*time.Second)
			id := away.SessionID()
			must[string](t)(away.Create("/away", nil, zk.FlagEphemeral, open))
			e.CloseConnection(id)
			leader := e.Leader()
			leader.Kill()
			e.Leader()
			e.Advance(time.Hour)
			e.AssertMissing("/away")
			leader.Start()
		}
	})
}

// No connected client expires, whatever else happens, and a disconnected one expires at once.
func TestAdvance_UnderTraffic(t *testing.T) {
	const timeout = 20 * time.Second // long enough that clients do not leave a machine that stands still
	rounds := exhaustive.Or(10, 60)
	for _, members := range []int{1, 3} {
		everywhere(t, func(t *testing.T) {
			e := zktest.StartEnsemble(t, members)
			var wg sync.WaitGroup
			stop := make(chan struct{})
			for range 3 {
				c := e.ConnectTimeout(t, timeout)
				id := c.SessionID()
				must[string](t)(c.Create("/stays-", nil, zk.FlagEphemeralSequential, open))
				// Stopped by stop, awaited by wg.
				wg.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
						}
						if _, err := c.Set("/", nil, -1); err != nil || c.SessionID() != id {
							t.Errorf("session 0x%x, before 0x%x: %v", c.SessionID(), id, err)
							return
						}
					}
				})
			}
			for range rounds {
				away := mute(t, e.Service, timeout)
				must[string](t)(away.Create("/away", nil, zk.FlagEphemeral, open))
				e.CloseConnection(away.SessionID())
				e.Advance(timeout)
				e.AssertMissing("/away")
				fresh := mute(t, e.Service, timeout)
				e.Advance(time.Hour)
				if _, _, err := fresh.Get("/"); err != nil {
					t.Errorf("who was connected: %v", err)
				}
				fresh.Close()
			}
			close(stop)
			wg.Wait()
			if n := len(e.Sessions()); n != 3 {
				t.Errorf("%d sessions are left", n)
			}
		})
	}
}

// A client with TLS counts as connected, too, although its frames are not seen.
func TestTLS_Connected(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		ca := zktest.TLS(t)
		e := zktest.StartEnsemble(t, 3, ca.Servers())
		c := e.ConnectTLS(t, ca.Client(t, "alice"))
		must[string](t)(c.Create("/e", nil, zk.FlagEphemeral, open))
		dial := e.TLSDialer(ca.Client(t, "bob"))
		gone := e.Client(t, func(cfg *client.Config) {
			cfg.Dial = func(_ context.Context, address string) (net.Conn, error) { return dial("tcp", address, time.Minute) }
		})
		if _, _, err := gone.Create(t.Context(), "/gone", nil, client.CreateOptions{Ephemeral: true}); err != nil {
			t.Fatal(err)
		}
		id := gone.Session().ID
		gone.Detach()
		connected := func(id int64) bool {
			return slices.ContainsFunc(e.Sessions(), func(s server.Session) bool { return s.ID == id && s.Connected })
		}
		until(func() error {
			if connected(id) {
				return errAway
			}
			return nil
		})
		if !connected(c.SessionID()) {
			t.Errorf("%+v", e.Sessions())
		}
		e.Advance(time.Hour)
		e.AssertOwner("/e", c.SessionID())
		e.AssertMissing("/gone")
		member := e.MemberOf(c)
		e.CloseConnection(c.SessionID())
		until(func() error {
			_, _, err := c.Get("/e")
			return err
		})
		member.Disconnect()
		until(func() error {
			_, _, err := c.Get("/e")
			return err
		})
		e.AssertOwner("/e", c.SessionID())
	})
}

// What a member reports that it heard before a jump of the clock is no news after the jump. In
// virtual time only: an election, which a busy machine may cause, would give the session its full
// timeout again.
func TestAdvance_ReportsUnderWay(t *testing.T) {
	for range 8 { // in one of six runs no such report is under way
		synctest.Test(t, func(t *testing.T) {
			e := zktest.StartEnsemble(t, 3)
			follower := e.Followers()[0]
			away := e.Client(t, func(cfg *client.Config) {
				cfg.Servers, cfg.SessionTimeout = []string{follower.Address()}, 10*time.Second
			})
			if _, _, err := away.Create(t.Context(), "/away", nil, client.CreateOptions{Ephemeral: true}); err != nil {
				t.Fatal(err)
			}
			e.Partition([]int{follower.ID()})
			time.Sleep(time.Second)
			away.Detach()
			e.Advance(6 * time.Second)
			e.AssertExists("/away")
			e.Heal()
			time.Sleep(100 * time.Millisecond)
			e.Advance(6 * time.Second)
			e.AssertMissing("/away")
		})
	}
}
