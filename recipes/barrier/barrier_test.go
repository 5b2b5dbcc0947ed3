package barrier_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/barrier"
	"github.com/gozkd/gozkd/zktest"
)

func TestBarrier(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		a, b := w.Client(), w.Client()
		ctx := t.Context()
		bar := barrier.New(a, "/jobs/gate")
		if err := bar.Wait(ctx); err != nil { // there is no barrier yet
			t.Fatal(err)
		}
		if err := bar.Remove(ctx); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := bar.Set(ctx); err != nil {
				t.Fatal(err)
			}
		}
		w.AssertData("/jobs/gate", "")
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if err := bar.Wait(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		done := make(chan error)
		for _, c := range []*recipes.Client{a, a, b} {
			// ends when the barrier is removed; awaited below
			go func() { done <- barrier.New(c, "/jobs/gate").Wait(ctx) }()
		}
		time.Sleep(time.Minute)
		select {
		case err := <-done:
			t.Fatalf("Wait returned while the barrier is set: %v", err)
		default:
		}
		if err := barrier.New(b, "/jobs/gate").Remove(ctx); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		w.AssertMissing("/jobs/gate")
	})
}

func TestBarrier_Namespace(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		bar := barrier.New(w.Client().Namespace("/app/one"), "/gate")
		if err := bar.Set(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.AssertExists("/app/one/gate")
		if err := bar.Remove(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.AssertMissing("/app/one/gate")
	})
}

// TestB1_Lagging uses a server that does not know yet that the barrier was set, or set again.
func TestB1_Lagging(t *testing.T) {
	for _, before := range []bool{false, true} {
		recipetest.Run(t, 3, func(t testing.TB, w *recipetest.World) {
			follower := w.Followers()[0]
			waiter := w.Client(recipes.Dialer(only(w, follower)))
			setter := barrier.New(w.Client(recipes.Dialer(only(w, w.Leader()))), "/gate")
			if before {
				if err := setter.Set(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if err := waiter.Sync(t.Context(), "/"); err != nil {
				t.Fatal(err)
			}
			w.Partition([]int{follower.ID()})
			if before {
				if err := setter.Remove(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if err := setter.Set(t.Context()); err != nil {
				t.Fatal(err)
			}
			if stat, err := waiter.Exists(t.Context(), "/gate"); err != nil || (stat != nil) != before {
				t.Fatalf("the server does not lag: %v, %v", stat, err)
			}
			done := make(chan error, 1)
			// ends when the barrier is removed; awaited below
			go func() { done <- barrier.New(waiter, "/gate").Wait(t.Context()) }()
			time.Sleep(100 * time.Millisecond)
			w.Heal()
			time.Sleep(time.Minute)
			select {
			case err := <-done:
				t.Fatalf("Wait returned while the barrier is set: %v", err)
			default:
			}
			if err := setter.Remove(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestBarrier_Faults has each kind of fault at each request of each operation.
func TestBarrier_Faults(t *testing.T) {
	steps := map[string]func(ctx context.Context, b *barrier.Barrier) error{
		"set":    func(ctx context.Context, b *barrier.Barrier) error { return b.Set(ctx) },
		"remove": func(ctx context.Context, b *barrier.Barrier) error { return b.Remove(ctx) },
		"wait":   func(ctx context.Context, b *barrier.Barrier) error { return b.Wait(ctx) },
	}
	for name, do := range steps {
		t.Run(name, func(t *testing.T) {
			recipetest.Steps(t, 1, recipetest.Faults(), func(t testing.TB, s *recipetest.Step) {
				other := barrier.New(s.World.Client(), "/dir/gate")
				if name != "set" {
					if err := other.Set(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				removed := make(chan struct{})
				if name == "wait" {
					time.AfterFunc(20*time.Second, func() {
						defer close(removed)
						if err := other.Remove(t.Context()); err != nil {
							t.Error(err)
						}
					})
				} else {
					close(removed)
				}
				s.Arm()
				begun := time.Now()
				err := do(s.Ctx, barrier.New(s.Client, "/dir/gate"))
				took := time.Since(begun)
				if name == "remove" && s.Ctx.Err() == nil && errors.Is(err, recipes.ErrOutcomeUnknown) {
					err = do(s.Ctx, barrier.New(s.Client, "/dir/gate")) // nobody sets the barrier again
				}
				switch {
				case s.Ctx.Err() == nil && err != nil:
					t.Error(err)
				case err != nil && !errors.Is(err, context.Canceled):
					t.Error(err)
				case err == nil && name == "wait" && took < 20*time.Second:
					t.Errorf("Wait returned %v after the barrier was removed", took)
				case err != nil && took > time.Second:
					t.Errorf("Wait returned %v after the end of ctx", took)
				}
				<-removed
				s.Settle()
				_, there := s.Tree("/")["/dir/gate"]
				if err == nil && there != (name == "set") {
					t.Errorf("Remove reported success, and the barrier is set: %v", there)
				}
			})
		})
	}
}

// TestCost_Barrier checks the round trips of each operation. Curator: set 1, remove 1, wait 1 if
// there is no barrier, otherwise 2 (DistributedBarrier.waitOnBarrier asks again when it is woken).
// kazoo: set is ensure_path, 1 or more; remove 1, wait 1.
func TestCost_Barrier(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		other := barrier.New(w.Client(), "/gate")
		c, hooks := w.Hooked()
		bar := barrier.New(c, "/gate")
		cost := func(what string, trips int, ops string, f func() error) {
			t.Helper()
			got := hooks.Cost(func() {
				if err := f(); err != nil {
					t.Error(err)
				}
			})
			if got.RoundTrips != trips || got.Ops() != ops {
				t.Errorf("%s: %d round trips, %s", what, got.RoundTrips, got.Ops())
			}
		}
		cost("wait, open", 1, "multi", func() error { return bar.Wait(t.Context()) })
		cost("set", 1, "multi", func() error { return bar.Set(t.Context()) })
		cost("set again", 1, "multi", func() error { return bar.Set(t.Context()) })
		cost("remove", 1, "delete", func() error { return bar.Remove(t.Context()) })
		if err := other.Set(t.Context()); err != nil {
			t.Fatal(err)
		}
		cost("wait", 2, "multi, exists+watch", func() error {
			done := make(chan error)
			// ends when the barrier is removed; awaited below
			go func() { done <- bar.Wait(t.Context()) }()
			time.Sleep(200 * time.Millisecond)
			synctest.Wait()
			if err := other.Remove(t.Context()); err != nil {
				t.Error(err)
			}
			return <-done
		})
	})
}

// only makes connections to one member.
func only(w *recipetest.World, m *zktest.Member) func(network, address string, timeout time.Duration) (net.Conn, error) {
	dial := w.Dialer()
	return func(network, _ string, timeout time.Duration) (net.Conn, error) {
		return dial(network, m.Address(), timeout)
	}
}
