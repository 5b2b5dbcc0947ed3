package barrier_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/barrier"
	"github.com/gozkd/gozkd/zktest"
)

// entering is a call of Enter in progress.
type entering struct {
	t      testing.TB
	double *barrier.Double
	done   chan struct{}
	member *barrier.Participant
	err    error
}

func enter(ctx context.Context, t testing.TB, c *recipes.Client, members int) *entering {
	e := &entering{t: t, double: barrier.NewDouble(c, "/both", members, "me"), done: make(chan struct{})}
	go func() { // ends with Enter; awaited by the reader of done
		defer close(e.done)
		e.member, e.err = e.double.Enter(ctx)
	}()
	return e
}

// waits checks that the member does not get in for a minute.
func (e *entering) waits() {
	e.t.Helper()
	select {
	case <-e.done:
		e.t.Fatalf("the member is in: %v", e.err)
	case <-time.After(time.Minute):
	}
}

func (e *entering) in() *barrier.Participant {
	e.t.Helper()
	select {
	case <-e.done:
		if e.err != nil {
			e.t.Fatal(e.err)
		}
	case <-time.After(time.Minute):
		e.t.Fatal("the member is not in")
	}
	return e.member
}

// leave calls Leave in the background.
func leave(ctx context.Context, m *barrier.Participant) chan error {
	done := make(chan error, 1)
	go func() { done <- m.Leave(ctx) }() // ends with Leave; awaited by the reader of done
	return done
}

func left(t testing.TB, done chan error) {
	t.Helper()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("Leave has not returned")
	}
}

func staysIn(t testing.TB, done chan error) {
	t.Helper()
	select {
	case err := <-done:
		t.Fatalf("Leave has returned: %v", err)
	case <-time.After(time.Minute):
	}
}

func TestDouble(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		ctx := t.Context()
		clients := []*recipes.Client{w.Client(), w.Client(), w.Client()}
		var token int64
		for range 3 {
			first := enter(ctx, t, clients[0], 3)
			first.waits()
			second := enter(ctx, t, clients[1], 3)
			second.waits()
			w.AssertMissing("/both/ready")
			third := enter(ctx, t, clients[2], 3)
			members := []*barrier.Participant{third.in(), first.in(), second.in()}
			w.AssertExists("/both/ready")
			if _, err := members[0].Commit(ctx, client.SetOp("/both", []byte("result"), -1)); err != nil {
				t.Error(err)
			}
			begun := token
			for _, m := range members {
				if m.Token() <= begun {
					t.Errorf("token %d is not greater than %d", m.Token(), begun)
				}
				token = max(token, m.Token())
			}
			one, two := leave(ctx, members[0]), leave(ctx, members[1])
			staysIn(t, one)
			staysIn(t, two)
			three := leave(ctx, members[2])
			for _, done := range []chan error{one, two, three} {
				left(t, done)
			}
			for _, m := range members {
				if m.Context().Err() == nil {
					t.Error("the member has left and its Context is alive")
				}
			}
			w.AssertChildren("/both")
		}
	})
}

func TestDouble_With(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c := w.Client()
		double := barrier.NewDouble(c, "/both", 2, "")
		errOops := errors.New("oops")
		var wg sync.WaitGroup
		for i := range 2 {
			wg.Go(func() {
				err := double.With(t.Context(), func(ctx context.Context) error {
					time.Sleep(time.Duration(i) * time.Second)
					if ctx.Err() != nil {
						t.Error(ctx.Err())
					}
					if i == 1 {
						return errOops
					}
					return nil
				})
				if i == 1 && !errors.Is(err, errOops) || i == 0 && err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		w.AssertChildren("/both")
		func() {
			defer func() {
				if recover() == nil {
					t.Error("With swallowed the panic")
				}
			}()
			_ = barrier.NewDouble(c, "/both", 1, "").With(t.Context(), func(context.Context) error { panic("oops") })
		}()
		w.AssertChildren("/both", "ready") // released without Leave, as if it had died
		err := barrier.NewDouble(c, "/both", 1, "").With(t.Context(), func(ctx context.Context) error {
			w.ExpireSession(c.Session().ID())
			<-ctx.Done()
			return context.Cause(ctx)
		})
		if !errors.Is(err, recipes.ErrSessionLost) {
			t.Error(err)
		}
	})
}

// TestB2_StaleReady checks that a ready znode left over from an earlier round admits nobody, and
// does not prevent the next round from opening.
func TestB2_StaleReady(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		w.Load(map[string]string{"/both": "", "/both/ready": ""})
		a, b := w.Client(), w.Client()
		first := enter(t.Context(), t, a, 2)
		first.waits()
		second := enter(t.Context(), t, b, 2)
		one, two := leave(t.Context(), first.in()), leave(t.Context(), second.in())
		left(t, one)
		left(t, two)
		w.AssertChildren("/both")
	})
}

// TestB2_Dead checks that a waiting member that died or gave up does not count.
func TestB2_Dead(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		a, b, c := w.Client(), w.Client(), w.Client()
		dead := enter(t.Context(), t, a, 2)
		dead.waits()
		w.ExpireSession(a.Session().ID())
		<-dead.done
		if !errors.Is(dead.err, recipes.ErrSessionLost) {
			t.Errorf("%v", dead.err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		tired := enter(ctx, t, b, 2)
		tired.waits()
		cancel()
		<-tired.done
		if !errors.Is(tired.err, context.Canceled) {
			t.Errorf("%v", tired.err)
		}
		time.Sleep(time.Second)
		w.AssertChildren("/both")
		last := enter(t.Context(), t, c, 2)
		last.waits()
		again := enter(t.Context(), t, a, 2) // in the next session
		one, two := leave(t.Context(), last.in()), leave(t.Context(), again.in())
		left(t, one)
		left(t, two)
	})
}

// TestB2_LateComer checks that a member that arrives while the barrier is open enters at once, and
// that the others wait for it, even if the member that opened the barrier has left.
func TestB2_LateComer(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		a, b, c := w.Client(), w.Client(), w.Client()
		first, second := enter(t.Context(), t, a, 2), enter(t.Context(), t, b, 2)
		first.in()
		second.in()
		if err := second.member.Release(t.Context()); err != nil { // without waiting
			t.Fatal(err)
		}
		late := enter(t.Context(), t, c, 2)
		late.in()
		one := leave(t.Context(), first.member)
		staysIn(t, one)
		left(t, leave(t.Context(), late.member))
		left(t, one)
		w.AssertChildren("/both")
	})
}

// TestB3_Dead checks that nobody waits for a member whose session has ended, whether or not its
// name sorts first.
func TestB3_Dead(t *testing.T) {
	for i := range 3 {
		recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
			clients := []*recipes.Client{w.Client(), w.Client(), w.Client()}
			var all []*entering
			for _, c := range clients {
				all = append(all, enter(t.Context(), t, c, 3))
			}
			var done []chan error
			for j, e := range all {
				if e.in(); j != i {
					done = append(done, leave(t.Context(), e.member))
				}
			}
			staysIn(t, done[0])
			staysIn(t, done[1])
			w.Unplug(clients[i])
			left(t, done[0])
			left(t, done[1])
			if err := all[i].member.Leave(t.Context()); !errors.Is(err, recipes.ErrSessionLost) {
				t.Error(err)
			}
			w.AssertChildren("/both")
		})
	}
}

func TestB3_Deleted(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c := w.Client()
		e := enter(t.Context(), t, c, 1)
		if err := c.Delete(t.Context(), e.in().Path(), -1); err != nil {
			t.Fatal(err)
		}
		if err := e.member.Leave(t.Context()); !errors.Is(err, recipes.ErrNotHeld) {
			t.Error(err)
		}
		if err := e.member.Leave(t.Context()); !errors.Is(err, recipes.ErrNotHeld) {
			t.Error(err)
		}
	})
}

// TestB4_SlowLeaver checks that a member that notices late that all have left does not wait for
// those that are in the next round already.
func TestB4_SlowLeaver(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		slow, hooks := w.Hooked()
		clients := []*recipes.Client{slow, w.Client(), w.Client()}
		for range 6 { // names are random: the slow member must sort first at times
			var all []*entering
			for _, c := range clients {
				all = append(all, enter(t.Context(), t, c, 3))
			}
			for _, e := range all {
				e.in()
			}
			held := make(chan struct{})
			var once sync.Once
			watched := false
			hooks.Arm(func(r recipetest.Request) error {
				watched = watched || r.Op == zktest.Delete
				if watched && r.Op == zktest.Children {
					once.Do(func() { <-held })
				}
				return nil
			}, nil)
			done := []chan error{leave(t.Context(), all[0].member), leave(t.Context(), all[1].member), leave(t.Context(), all[2].member)}
			left(t, done[1])
			left(t, done[2])
			next := []*entering{enter(t.Context(), t, clients[1], 3), enter(t.Context(), t, clients[2], 3)}
			next[0].waits()
			next[1].waits()
			close(held)
			left(t, done[0])
			hooks.Arm(nil, nil)
			next = append(next, enter(t.Context(), t, slow, 3))
			for _, e := range next {
				e.in()
			}
			done = nil
			for _, e := range next {
				done = append(done, leave(t.Context(), e.member))
			}
			for _, d := range done {
				left(t, d)
			}
			w.AssertChildren("/both")
		}
	})
}

// TestB4_SameName checks that a member that has one name in all rounds, as Curator's and kazoo's
// have, is not mistaken for that of the previous round.
func TestB4_SameName(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		other := w.Client()
		ephemeral := func() {
			if _, err := other.Create(t.Context(), "/both/00000000-aaaa", nil, recipes.CreateOptions{Ephemeral: true, Parents: true}); err != nil {
				t.Fatal(err)
			}
		}
		ephemeral()
		c, hooks := w.Hooked()
		e := enter(t.Context(), t, c, 2)
		e.in()
		held := make(chan struct{})
		gone := false
		hooks.Arm(func(r recipetest.Request) error {
			if gone = gone || r.Op == zktest.Delete; gone && r.Op == zktest.Children {
				<-held
			}
			return nil
		}, nil)
		done := leave(t.Context(), e.member)
		staysIn(t, done)
		for _, path := range []string{"/both/00000000-aaaa", "/both/ready"} {
			if err := other.Delete(t.Context(), path, -1); err != nil {
				t.Fatal(err)
			}
		}
		ephemeral()
		close(held)
		left(t, done)
		hooks.Arm(nil, nil)
		next := enter(t.Context(), t, c, 2)
		next.in()
	})
}

// TestDouble_Faults has each kind of fault at each request of one of two members, which enters
// again if its session is lost.
func TestDouble_Faults(t *testing.T) {
	recipetest.Steps(t, 1, recipetest.Faults(), func(t testing.TB, s *recipetest.Step) {
		att := newAttendance(2, 200*time.Millisecond)
		other := s.World.Client()
		stop, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { att.work(stop, barrier.NewDouble(other, "/both", 2, "other")) })
		time.Sleep(100 * time.Millisecond)
		s.Arm()
		for range 2 {
			att.once(s.Ctx, barrier.NewDouble(s.Client, "/both", 2, "this"))
		}
		s.ClearFaults()
		before := att.rounds()
		if s.Ctx.Err() == nil {
			for range 4 { // the first attempt may use a session that has ended
				att.once(t.Context(), barrier.NewDouble(s.Client, "/both", 2, "this"))
			}
			if att.rounds() < before+2 {
				t.Errorf("%d rounds; there were %d before", att.rounds(), before)
			}
		}
		cancel()
		wg.Wait()
		s.Settle()
		for path := range s.Tree("/both") {
			if path != "/both" && path != "/both/ready" {
				t.Errorf("%s still exists", path)
			}
		}
		if err := att.err(); err != nil {
			t.Error(err)
		}
	})
}

// TestCost_Double checks the requests of each operation. Curator's DistributedDoubleBarrier: enter
// is exists+watch, create, children for all, create for the last, and children and create after the
// wake-up: 3, 5 and 4. leave is children, delete, delete for the last; 4 and the opening for
// others. kazoo's DoubleBarrier: enter is ensure_path, create, exists+watch, children, and
// ensure_path of the ready znode for the last; leave as Curator, with the delete of the ready znode
// first.
func TestCost_Double(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		w.Load(map[string]string{"/both": ""})
		other := w.Client()
		c, hooks := w.Hooked()
		want := func(what string, got recipetest.Cost, trips int, ops string) {
			t.Helper()
			if got.RoundTrips != trips || got.Ops() != ops {
				t.Errorf("%s: %d round trips, %s", what, got.RoundTrips, got.Ops())
			}
		}
		for range 4 { // names are random
			var e, o *entering
			want("enter, first", hooks.Cost(func() {
				e = enter(t.Context(), t, c, 2)
				time.Sleep(320 * time.Millisecond)
				o = enter(t.Context(), t, other, 2)
				e.in()
				time.Sleep(-20 * time.Millisecond)
			}), 3, "create, exists+watch, children, get+watch")
			o.in()
			var one chan error
			trips, ops := 5, "exists, children, get+watch, delete, children"
			if e.member.Path() < o.member.Path() {
				// one more: the opening
				trips, ops = 6, "exists, children, get+watch, children, multi"
			}
			want("leave", hooks.Cost(func() {
				one = leave(t.Context(), e.member)
				time.Sleep(400 * time.Millisecond)
				left(t, leave(t.Context(), o.member))
				left(t, one)
			}), trips, ops)
		}
		for range 2 {
			o := enter(t.Context(), t, other, 2)
			time.Sleep(time.Second)
			var e *entering
			want("enter, last", hooks.Cost(func() {
				e = enter(t.Context(), t, c, 2)
				e.in()
			}), 4, "create, exists+watch, children, multi, get+watch")
			if err := o.in().Release(t.Context()); err != nil {
				t.Error(err)
			}
			want("leave, last", hooks.Cost(func() { left(t, leave(t.Context(), e.member)) }), 3, "exists, children, multi")
		}
	})
}

// TestB4_Suspended checks that a member whose hold ended with the connection, and not with the
// session, leaves nevertheless.
func TestB4_Suspended(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c, other := w.Client(recipes.EndHoldsWhenSuspended()), w.Client()
		first, second := enter(t.Context(), t, c, 2), enter(t.Context(), t, other, 2)
		member, rest := first.in(), second.in()
		w.Unplug(c)
		<-member.Context().Done()
		w.Plug(c)
		if err := member.Leave(t.Context()); !errors.Is(err, recipes.ErrNotHeld) {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := rest.Leave(ctx); err != nil {
			t.Error(err)
		}
	})
}
