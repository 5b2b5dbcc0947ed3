package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/zktest"
)

// TestLost_BeforeServerExpires is G1: whenever and wherever the connection is cut, the client knows
// that its session is over before the server has ended it.
func TestLost_BeforeServerExpires(t *testing.T) {
	cuts := []string{"server", "links", "pause", "kill", "links of leader"}
	rapid.Check(t, func(rt *rapid.T) {
		kind := rapid.SampledFrom(recipetest.Kinds()).Draw(rt, "kind")
		members := rapid.SampledFrom([]int{1, 3}).Draw(rt, "members")
		tick := rapid.SampledFrom([]time.Duration{500 * time.Millisecond, 2 * time.Second}).Draw(rt, "tick")
		timeout := time.Duration(rapid.IntRange(2000, 20000).Draw(rt, "timeout")) * time.Millisecond
		timeout = max(timeout, 2*tick) // the server grants no less
		phase := time.Duration(rapid.IntRange(0, 20000).Draw(rt, "phase")) * time.Millisecond
		cut := rapid.SampledFrom(cuts).Draw(rt, "cut")
		heal := time.Duration(rapid.IntRange(0, 60000).Draw(rt, "heal")) * time.Millisecond
		if members == 1 && (cut == "links" || cut == "links of leader" || cut == "kill") {
			cut = "server"
		}
		what := fmt.Sprint(kind, " members ", members, " tick ", tick, " timeout ", timeout, " phase ", phase, " cut ", cut, " heal ", heal)
		synctest.Test(t, func(t *testing.T) {
			lostBeforeExpiry(t, what, kind, members, tick, timeout, phase, cut, heal)
		})
		if t.Failed() {
			rt.Fatalf("%s", what)
		}
	})
}

func lostBeforeExpiry(t *testing.T, what string, kind recipetest.Kind, members int, tick, timeout, phase time.Duration, cut string, heal time.Duration) {
	e := zktest.StartEnsemble(t, members, zktest.WithConfig(func(_ int, c *server.Config) {
		c.Tick, c.MinSessionTimeout = tick, 2*tick
	}))
	c := recipetest.Open(t, kind, e.Service, timeout, recipes.Retry(recipes.Forever(50*time.Millisecond)))
	path, err := c.Create(t.Context(), "/e", nil, recipes.CreateOptions{Ephemeral: true})
	if err != nil {
		t.Fatal(err)
	}
	session := c.Session()
	derived, cancel := context.WithCancel(session.Context())
	defer cancel()
	time.Sleep(phase)
	member := e.MemberOf(sessionID(session.ID()))
	repair := func() {}
	switch cut {
	case "server":
		member.Partition()
		repair = member.Heal
	case "links":
		e.Partition([]int{member.ID()})
		repair = e.Heal
	case "links of leader":
		e.Partition([]int{e.Leader().ID()})
		repair = e.Heal
	case "pause":
		member.Pause()
		repair = member.Resume
	case "kill":
		member.Kill()
		repair = member.Start
	}
	step := exhaustive.Or(50*time.Millisecond, 10*time.Millisecond)
	known := false
	for passed := time.Duration(0); passed < heal+3*timeout; passed += step {
		if passed >= heal && repair != nil {
			repair()
			repair = nil
		}
		// Ask the client first and the server second: the session must not be alive for the client
		// while its znode is gone on the server. If the server's answer took time, because there
		// was no leader, ask the client again.
		known = known || session.Context().Err() != nil
		stands := members == 1 && cut == "pause" && repair != nil // and so cannot be asked
		if !known && !stands {
			asked := time.Now()
			gone := e.Znode(path) == nil
			if time.Since(asked) > 0 {
				known = session.Context().Err() != nil
			}
			if gone && !known {
				t.Errorf("%s: after %v the znode is deleted and the client's session is alive", what, passed)
				return
			}
		}
		if known && derived.Err() == nil {
			t.Errorf("%s: after %v a derived context is alive", what, passed)
			return
		}
		time.Sleep(step)
	}
	if repair != nil {
		repair()
	}
}

type sessionID int64

func (id sessionID) SessionID() int64 { return int64(id) }

// TestLost_ShorterTimeout resumes a session on a server whose configuration grants a shorter
// timeout.
func TestLost_ShorterTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		longest := 20 * time.Second
		s := zktest.Start(t, zktest.WithConfig(func(_ int, c *server.Config) {
			c.Tick, c.MaxSessionTimeout = time.Second, longest
		}))
		c := recipetest.Open(t, recipetest.Connect, s.Service, 20*time.Second, recipes.Retry(recipes.Forever(50*time.Millisecond)))
		path, err := c.Create(t.Context(), "/e", nil, recipes.CreateOptions{Ephemeral: true})
		if err != nil {
			t.Fatal(err)
		}
		session := c.Session()
		time.Sleep(10 * time.Second)
		longest = 5 * time.Second
		s.Restart()
		if _, err := c.Exists(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		for _, quiet := range []time.Duration{0, 10 * time.Second} {
			time.Sleep(quiet)
			if c.Session() != session || session.Context().Err() != nil {
				t.Fatal("the client has another session")
			}
			if left := session.Remaining(); left > longest || c.Timeout() != longest {
				t.Errorf("after %v of silence %v remain of a timeout of %v", quiet, left, c.Timeout())
			}
		}
		s.Partition()
		for session.Context().Err() == nil {
			if s.Znode(path) == nil {
				t.Fatal("the znode is deleted and the client's session is alive")
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
}

// TestLost_Multi checks that the ephemerals of a multi are deleted when their session is over for
// the Client but not for the server. With a wrapped connection that session lives on.
func TestLost_Multi(t *testing.T) {
	for i := range 4 {
		kind, end := recipetest.Kinds()[i%2], []string{"asleep", "closed"}[i/2]
		recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
			w.Load(map[string]string{"/d": ""})
			var asleep atomic.Int64 // a time.Duration
			c := w.Open(kind, recipes.SuspendedFor(func() time.Duration { return time.Duration(asleep.Load()) }))
			session := c.Session()
			create := func(path string, sequential bool) client.Op {
				return client.CreateOp(path, nil, client.CreateOptions{Ephemeral: true, Sequential: sequential})
			}
			for range 3 {
				if _, err := c.Multi(t.Context(), create("/d/gone", false), create("/d/n-", true)); err != nil {
					t.Fatal(err)
				}
				if _, err := c.Multi(t.Context(), client.DeleteOp("/d/gone", -1)); err != nil {
					t.Fatal(err)
				}
			}
			w.DropReply(zktest.Multi)
			if _, err := c.Multi(t.Context(), create("/d/unknown", false), client.CreateOp("/d/stays", nil, client.CreateOptions{})); !errors.Is(err, recipes.ErrOutcomeUnknown) {
				t.Error(err)
			}
			if kind == recipetest.Wrap {
				if n := recipes.RememberedEphemerals(c); n != 4 {
					t.Errorf("%d ephemerals are remembered", n)
				}
			}
			w.AssertExists("/d/unknown")
			if end == "closed" {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			} else {
				asleep.Store(int64(time.Hour))
				time.Sleep(time.Minute)
				if c.Session() == session || c.Session().Context().Err() != nil || (c.Session().ID() == session.ID()) != (kind == recipetest.Wrap) {
					t.Errorf("%s: after a lost session there is no new Session, or not with the expected ID", kind)
				}
			}
			w.AssertChildren("/d", "stays")
		})
	}
}
