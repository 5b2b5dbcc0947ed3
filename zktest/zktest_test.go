package zktest_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/goleak"

	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/zktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(watchdog.Watch(m)) }

var open = zk.WorldACL(zk.PermAll)

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// until repeats f until it returns no error.
func until(f func() error) {
	for f() != nil {
		time.Sleep(time.Millisecond)
	}
}

// everywhere runs f on real time and in a bubble.
func everywhere(t *testing.T, f func(t *testing.T)) {
	t.Run("real time", func(t *testing.T) { t.Parallel(); f(t) })
	t.Run("bubble", func(t *testing.T) { t.Parallel(); synctest.Test(t, f) })
}

func TestStart(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		s := zktest.Start(t)
		c := s.Connect(t)
		must[string](t)(c.Create("/a", []byte("x"), 0, open))
		s.AssertData("/a", "x")
		s.Kill()
		s.Start()
		s.AssertData("/a", "x")
		until(func() error { // go-zookeeper reports connection errors to the first caller
			data, _, err := c.Get("/a")
			if err == nil && string(data) != "x" {
				t.Errorf("%q", data)
			}
			return err
		})
		must[string](t)(c.Create("/e", nil, zk.FlagEphemeral, open))
		s.Restart()
		s.AssertOwner("/e", c.SessionID())
	})
}

func TestEnsemble_LeaderKill(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		e := zktest.StartEnsemble(t, 3)
		c := e.Connect(t)
		must[string](t)(c.Create("/e", nil, zk.FlagEphemeral, open))
		id := c.SessionID()
		for range 3 {
			leader := e.Leader()
			leader.Kill()
			if next := e.Leader(); next.ID() == leader.ID() {
				t.Fatalf("member %d leads and is dead", next.ID())
			}
			until(func() error {
				_, err := c.Set("/e", []byte("x"), -1)
				return err
			})
			leader.Start()
		}
		if c.SessionID() != id {
			t.Error("the session was lost")
		}
	})
}

func TestFaults(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		s := zktest.Start(t)
		c := s.Connect(t)
		dropped := s.DropReply(zktest.Create, zktest.OnPath("/a"))
		must[string](t)(c.Create("/b", nil, 0, open))
		if _, err := c.Create("/a", nil, 0, open); !errors.Is(err, zk.ErrConnectionClosed) {
			t.Errorf("create: %v", err)
		}
		dropped.Wait()
		s.AssertExists("/a")
		s.FailNext(zktest.Set, proto.ErrBadVersion)
		if _, err := c.Set("/a", nil, -1); !errors.Is(err, zk.ErrBadVersion) {
			t.Errorf("set: %v", err)
		}
		must[*zk.Stat](t)(c.Set("/a", nil, -1))
		delayed := s.Delay(zktest.Get, 50*time.Millisecond)
		begin := time.Now()
		if _, _, err := c.Get("/a"); err != nil || time.Since(begin) < 50*time.Millisecond {
			t.Errorf("get took %v: %v", time.Since(begin), err)
		}
		if delayed.Count() != 1 {
			t.Errorf("delayed %d times", delayed.Count())
		}
	})
}

func TestTime(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		for _, n := range []int{1, 3} {
			var s *zktest.Service
			if n == 1 {
				s = zktest.Start(t).Service
			} else {
				s = zktest.StartEnsemble(t, n).Service
			}
			stays, goes := s.ConnectTimeout(t, 10*time.Second), s.ConnectTimeout(t, 10*time.Second)
			must[string](t)(stays.Create("/stays", nil, zk.FlagEphemeral, open))
			must[string](t)(goes.Create("/goes", nil, zk.FlagEphemeral, open))
			must[string](t)(stays.CreateTTL("/ttl", nil, zk.FlagTTL, open, time.Minute))
			s.ExpireSession(goes.SessionID())
			s.AssertMissing("/goes")
			s.Advance(30 * time.Second)
			s.AssertExists("/ttl", "/stays")
			s.Advance(10 * time.Minute)
			s.AssertMissing("/ttl")
			s.AssertExists("/stays")
			s.AssertOwner("/stays", stays.SessionID())
		}
	})
}
