package election_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/election"
)

func begin(l *election.Latch) {
	if err := l.Start(context.Background()); err != nil {
		panic(err)
	}
}

// start returns a latch that has joined the election after all earlier ones, and is closed with the
// test.
func start(t testing.TB, c *recipes.Client, id string) *election.Latch {
	t.Helper()
	l := election.NewLatch(c, "/app/leader", id)
	begin(l)
	t.Cleanup(func() {
		// The test's own ctx has ended.
		if err := l.Close(); err != nil && !errors.Is(err, recipes.ErrOutcomeUnknown) {
			t.Error(err)
		}
	})
	time.Sleep(time.Second)
	return l
}

// leads checks that the latch leads within a minute.
func leads(t testing.TB, l *election.Latch) *recipes.Hold {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	held, err := l.Await(ctx)
	if err != nil {
		t.Fatalf("%s: %v", l.ID(), err)
	}
	if l.Leadership() != held {
		t.Errorf("latch %s leads and Leadership says that it does not", l.ID())
	}
	return held
}

func waits(t testing.TB, l *election.Latch) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := l.Await(ctx); !errors.Is(err, context.DeadlineExceeded) || l.Leadership() != nil {
		t.Fatalf("%s: %v, %v", l.ID(), err, l.Leadership())
	}
}

func candidates(t testing.TB, l *election.Latch, want ...string) {
	t.Helper()
	ids, err := l.Candidates(t.Context())
	if err != nil || !slices.Equal(ids, want) {
		t.Errorf("candidates %q, %v; want %q", ids, err, want)
	}
	leader, err := l.Leader(t.Context())
	if len(want) == 0 {
		if !errors.Is(err, proto.ErrNoNode) {
			t.Errorf("leader %q, %v", leader, err)
		}
	} else if err != nil || leader != want[0] {
		t.Errorf("leader %q, %v", leader, err)
	}
}

func TestLatch(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		one, two := w.Client(), w.Client()
		outside := election.NewLatch(two, "/app/leader", "outside")
		candidates(t, outside)
		a := start(t, one, "a")
		b := start(t, two, "b")
		c := start(t, two, "c") // a second latch in the same process
		candidates(t, outside, "a", "b", "c")
		first := leads(t, a)
		waits(t, b)
		w.AssertOwner(first.Path(), one.Session().ID())
		for path, id := range w.Tree("/app/leader") {
			if name := strings.TrimPrefix(path, "/app/leader/"); id != "" && (!strings.HasPrefix(name, "_c_") || !strings.Contains(name, "-latch-00000000")) {
				t.Errorf("%s: %s", path, id)
			}
		}

		// A latch that resigns goes to the end of the line.
		if err := first.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		second := leads(t, b)
		if first.Context().Err() == nil || second.Token() <= first.Token() {
			t.Errorf("%v, tokens %d, %d", first.Context().Err(), first.Token(), second.Token())
		}
		if _, err := first.Commit(t.Context(), client.CreateOp("/late", nil, client.CreateOptions{})); !errors.Is(err, recipes.ErrNotHeld) {
			t.Error(err)
		}
		time.Sleep(time.Second)
		candidates(t, outside, "b", "c", "a")

		// So does a latch whose session is lost.
		w.ExpireSession(two.Session().ID())
		leads(t, a)
		time.Sleep(time.Second)
		if second.Context().Err() == nil || !errors.Is(context.Cause(second.Context()), recipes.ErrSessionLost) {
			t.Errorf("%v", context.Cause(second.Context()))
		}
		if ids, err := outside.Candidates(t.Context()); err != nil || len(ids) != 3 || ids[0] != "a" {
			t.Errorf("candidates %q, %v", ids, err)
		}

		// And a latch whose znode is deleted: a leader notices a moment later, a waiting one when
		// its turn would have come.
		for path, id := range w.Tree("/app/leader") {
			if id == "a" || id == "b" {
				if err := two.Delete(t.Context(), path, -1); err != nil {
					t.Fatal(err)
				}
			}
		}
		leads(t, c)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if _, err := c.Await(t.Context()); !errors.Is(err, recipes.ErrClosed) {
			t.Error(err)
		}
		time.Sleep(time.Second)
		if ids, err := outside.Candidates(t.Context()); err != nil || len(ids) != 2 {
			t.Errorf("candidates %q, %v", ids, err)
		}
	})
}

func TestLatch_Close(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c := w.Client()
		never := election.NewLatch(c, "/app/leader", "never")
		if err := never.Close(); err != nil {
			t.Error(err)
		}
		if err := never.Start(t.Context()); !errors.Is(err, recipes.ErrClosed) {
			t.Error(err)
		}
		a, b := start(t, c, "a"), start(t, c, "b")
		begin(a)
		held := leads(t, a)
		awaited := make(chan error, 1)
		go func() { // ends when b is closed; awaited below
			_, err := b.Await(t.Context())
			awaited <- err
		}()
		time.Sleep(time.Second)
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if err := <-awaited; !errors.Is(err, recipes.ErrClosed) {
			t.Error(err)
		}
		candidates(t, a, "a")
		for range 2 {
			if err := a.Close(); err != nil {
				t.Error(err)
			}
		}
		if held.Context().Err() == nil || a.Leadership() != nil {
			t.Error("the latch still leads")
		}
		w.AssertChildren("/app/leader")

		// Without a server, Close waits no longer than the session timeout, and the rest is done
		// later.
		d := start(t, c, "d")
		leads(t, d)
		w.Member(1).Partition()
		begun := time.Now()
		if err := d.Close(); !errors.Is(err, recipes.ErrOutcomeUnknown) || time.Since(begun) > c.Timeout() {
			t.Errorf("Close returned %v after %v", err, time.Since(begun))
		}
		w.Member(1).Heal()
		time.Sleep(time.Second)
		w.AssertChildren("/app/leader")
	})
}

// TestLatch_Refused checks that Await reports the server's refusal, and that the latch stops
// trying.
func TestLatch_Refused(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c := w.Client()
		if _, err := c.Create(t.Context(), "/app", nil, recipes.CreateOptions{ACL: proto.ReadACL()}); err != nil {
			t.Fatal(err)
		}
		l := start(t, c, "a")
		if _, err := l.Await(t.Context()); !errors.Is(err, proto.ErrNoAuth) {
			t.Error(err)
		}
		closed := w.Client()
		m := election.NewLatch(closed, "/other", "a")
		begin(m)
		leads(t, m)
		if err := closed.Close(); err != nil {
			t.Error(err)
		}
		if _, err := m.Await(t.Context()); !errors.Is(err, recipes.ErrClosed) {
			t.Error(err)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestLatch_RefusedLater: the callers of Await learn that the server refuses, and the latch does
// not try again.
func TestLatch_RefusedLater(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c, h := w.Hooked()
		l := election.NewLatch(c, "/app/leader", "a")
		if _, err := l.Await(t.Context()); !errors.Is(err, recipes.ErrNotStarted) {
			t.Errorf("before Start: %v", err)
		}
		h.Arm(func(r recipetest.Request) error {
			time.Sleep(time.Second) // until somebody waits
			return proto.ErrNoAuth
		}, nil)
		begin(l)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := l.Await(ctx); !errors.Is(err, proto.ErrNoAuth) {
			t.Errorf("Await: %v", err)
		}
		if _, err := l.Leader(ctx); !errors.Is(err, proto.ErrNoAuth) {
			t.Errorf("Leader: %v", err)
		}
		n := len(h.Requests())
		time.Sleep(time.Minute)
		if again := len(h.Requests()) - n; again > 0 {
			t.Errorf("%d requests of a latch that was refused", again)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestPauses: a candidate that cannot join tries about once a second.
func TestPauses(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		for name, f := range map[string]func(ctx context.Context, c *recipes.Client){
			"latch": func(ctx context.Context, c *recipes.Client) {
				l := election.NewLatch(c, "/app/leader", "a")
				begin(l)
				<-ctx.Done()
				if err := l.Close(); err != nil && !errors.Is(err, recipes.ErrOutcomeUnknown) {
					t.Error(err)
				}
			},
			"selector": func(ctx context.Context, c *recipes.Client) {
				_ = election.NewSelector(c, "/app/leader", "a").Run(ctx, nil) // until ctx ends
			},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			c, h := w.Hooked(recipes.Retry(recipes.Times(1, 10*time.Millisecond)))
			h.Arm(func(r recipetest.Request) error {
				if r.Op == "create" && ctx.Err() == nil {
					return recipes.ErrNoServer
				}
				return nil
			}, nil)
			f(ctx, c)
			cancel()
			if n := len(h.Requests()); n < 20 || n > 100 {
				t.Errorf("the %s made %d requests in 20 s", name, n)
			}
		}
	})
}

// TestLatch_Ends: a leadership that has ended is nobody's, at once, and Close does not wait for a
// session.
func TestLatch_Ends(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c := w.Client()
		l := start(t, c, "a")
		for range 20 {
			held := leads(t, l)
			if held.End(); l.Leadership() == held {
				t.Error("Leadership returns one that has ended")
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			again, err := l.Await(ctx)
			cancel()
			if err != nil || again == held {
				t.Errorf("Await returns one that has ended, or %v", err)
			}
		}
		w.Unplug(c)
		time.Sleep(2 * recipetest.Timeout)
		begun := time.Now()
		if err := l.Close(); err != nil || time.Since(begun) > time.Second {
			t.Errorf("Close returned after %v: %v", time.Since(begun), err)
		}
		w.Plug(c)
	})
}

// TestLatch_Outage loses the connection for longer than the RetryPolicy allows, and restores it.
func TestLatch_Outage(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c := w.Client(recipes.Retry(recipes.Times(2, 100*time.Millisecond)))
		l := start(t, c, "a")
		held := leads(t, l)
		w.Unplug(c)
		<-held.Context().Done()
		time.Sleep(5 * time.Minute)
		w.Plug(c)
		leads(t, l)
	})
}

// TestLatch_Suspended checks when a leadership ends while the connection is lost for less than the
// session timeout: at once with recipes.EndHoldsWhenSuspended, and otherwise never.
func TestLatch_Suspended(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		strict := w.Client(recipes.EndHoldsWhenSuspended())
		session := strict.Session()
		a := start(t, strict, "a")
		ended := leads(t, a)
		other := w.Client()
		b := start(t, other, "b")
		w.Unplug(strict)
		time.Sleep(time.Millisecond)
		if !errors.Is(context.Cause(ended.Context()), recipes.ErrNotHeld) || a.Leadership() != nil {
			t.Errorf("a still leads (%v)", context.Cause(ended.Context()))
		}
		w.Plug(strict)
		kept := leads(t, b)
		w.Unplug(other)
		time.Sleep(time.Second)
		w.Plug(other)
		time.Sleep(time.Second)
		if kept.Context().Err() != nil {
			t.Errorf("b lost the leadership: %v", context.Cause(kept.Context()))
		}
		candidates(t, a, "b", "a")
		if err := kept.Release(t.Context()); err != nil {
			t.Error(err)
		}
		leads(t, a) // in the same session, with a connection that lasts
		if strict.Session() != session {
			t.Error("the session was lost")
		}
	})
}

// TestE4 checks that the end of a leadership wakes one of many candidates.
func TestE4(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		a := start(t, w.Client(), "a")
		held := leads(t, a)
		var all []*recipetest.Hooks
		for i := range 5 {
			c, hooks := w.Hooked()
			start(t, c, fmt.Sprint(i))
			all = append(all, hooks)
		}
		time.Sleep(time.Minute)
		for _, h := range all {
			h.Arm(nil, nil)
		}
		if err := held.Release(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		woken := 0
		for _, h := range all {
			if n := len(h.Requests()); n > 0 {
				woken++
			}
		}
		if woken != 1 {
			t.Errorf("%d candidates were woken", woken)
		}
	})
}

// TestLatch_Faults has each kind of fault at each request of a latch that waits, leads, resigns,
// leads again and is closed.
func TestLatch_Faults(t *testing.T) {
	recipetest.Steps(t, 1, recipetest.Faults(), func(t testing.TB, s *recipetest.Step) {
		holds := recipetest.NewHoldHistory(1)
		other := s.World.Client()
		first := election.NewLatch(other, "/leader", "other")
		begin(first)
		held, err := first.Await(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		begun := holds.Begin(held.Context(), held.Token(), 1)
		s.Arm()
		l := election.NewLatch(s.Client, "/leader", "this")
		begin(l)
		time.AfterFunc(3*time.Second, func() {
			begun.End()
			if err := first.Close(); err != nil {
				t.Error(err)
			}
		})
		for range 2 {
			held, err := l.Await(s.Ctx)
			if err != nil {
				if s.Ctx.Err() == nil {
					t.Error(err)
				}
				break
			}
			holds.Begin(held.Context(), held.Token(), 1)
			select {
			case <-held.Context().Done():
			case <-time.After(100 * time.Millisecond):
			}
			if err := held.Release(s.Ctx); err != nil && s.Ctx.Err() == nil && !errors.Is(err, recipes.ErrOutcomeUnknown) {
				t.Error(err)
			}
		}
		if err := l.Close(); err != nil && s.Ctx.Err() == nil {
			t.Error(err)
		}
		s.Settle()
		s.AssertChildren("/leader")
		// After a forced end of its session, a leader may learn of the end a moment after another
		// one leads.
		if err := holds.Err(); err != nil && s.Fault != recipetest.Expire {
			t.Error(err)
		}
	})
}

// TestCost checks the requests of each step. For comparison: Curator's LeaderLatch starts with
// create, children, and get of its own znode, or get+watch of the one before; when that is deleted,
// children and get. close is delete. LeaderSelector is InterProcessMutex: create, children; delete.
// kazoo's Election is Lock: ensure_path, create, children; delete.
func TestCost(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		w.Load(map[string]string{"/leader": ""})
		c, hooks := w.Hooked()
		want := func(what string, got recipetest.Cost, trips int, ops string) {
			t.Helper()
			if got.RoundTrips != trips || got.Ops() != ops {
				t.Errorf("%s: %d round trips, %s", what, got.RoundTrips, got.Ops())
			}
		}
		l := election.NewLatch(c, "/leader", "a")
		want("latch", hooks.Cost(func() {
			begin(l)
			if _, err := l.Await(t.Context()); err != nil {
				t.Error(err)
			}
		}), 2, "create, children, get+watch")
		want("leader", hooks.Cost(func() {
			if _, err := l.Leader(t.Context()); err != nil {
				t.Error(err)
			}
		}), 2, "children, get")
		want("close", hooks.Cost(func() {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}), 1, "delete")
		want("selector", hooks.Cost(func() {
			err := election.NewSelector(c, "/leader", "a").Lead(t.Context(), func(context.Context, *recipes.Hold) error { return nil })
			if err != nil {
				t.Error(err)
			}
		}), 3, "create, children, delete")
	})
}
