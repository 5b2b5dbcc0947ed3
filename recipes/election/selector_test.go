package election_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/election"
)

var errOops = errors.New("oops")

func TestSelector_Lead(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		one, two := w.Client(), w.Client()
		type key struct{}
		ctx := context.WithValue(t.Context(), key{}, "value")
		var wg sync.WaitGroup
		var order []string
		lead := func(s *election.Selector, f func(context.Context, *recipes.Hold) error, check func(err error)) {
			wg.Go(func() {
				check(s.Lead(ctx, func(ctx context.Context, held *recipes.Hold) error {
					order = append(order, s.ID())
					if ctx.Err() != nil || ctx.Value(key{}) != "value" || held.Context().Err() != nil {
						t.Errorf("the ctx of f: %v, value %v", ctx.Err(), ctx.Value(key{}))
					}
					time.Sleep(10 * time.Second)
					return f(ctx, held)
				}))
			})
			time.Sleep(time.Second)
		}
		nothing := func(context.Context, *recipes.Hold) error { return nil }
		lead(election.NewSelector(one, "/app/leader", "a"), nothing, func(err error) {
			if err != nil {
				t.Error(err)
			}
		})
		lead(election.NewSelector(two, "/app/leader", "b"), func(context.Context, *recipes.Hold) error { return errOops }, func(err error) {
			if !errors.Is(err, errOops) {
				t.Error(err)
			}
		})
		lead(election.NewSelector(two, "/app/leader", ""), func(ctx context.Context, held *recipes.Hold) error {
			w.ExpireSession(two.Session().ID())
			<-ctx.Done()
			return nil
		}, func(err error) {
			if !errors.Is(err, recipes.ErrSessionLost) {
				t.Error(err)
			}
		})
		lead(election.NewKazooSelector(one, "/app/leader", "k"), nothing, func(err error) {
			if err != nil {
				t.Error(err)
			}
		})
		ids, err := election.NewSelector(one, "/app/leader", "").Candidates(t.Context())
		if err != nil || strings.Join(ids, ",") != "a,b,,k" {
			t.Errorf("candidates %q, %v", ids, err)
		}
		names := ""
		for path, id := range w.Tree("/app/leader") {
			if id == "a" && strings.Contains(path, "/_c_") && strings.HasSuffix(path, "-lock-0000000000") || id == "k" && strings.HasSuffix(path, "-__lock__0000000003") {
				names += id
			}
		}
		if len(names) != 2 {
			t.Errorf("%q", w.Tree("/app/leader"))
		}
		wg.Wait()
		if strings.Join(order, ",") != "a,b,,k" {
			t.Errorf("%q", order)
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Error("Lead swallowed the panic")
				}
			}()
			_ = election.NewSelector(one, "/app/leader", "").Lead(t.Context(), func(context.Context, *recipes.Hold) error { panic("oops") })
		}()
		w.AssertChildren("/app/leader")
	})
}

func TestSelector_Run(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c := w.Client(recipes.Retry(recipes.Times(2, 100*time.Millisecond)))
		s := election.NewSelector(c, "/leader", "a")
		turns, inside := 0, 0
		err := s.Run(t.Context(), func(ctx context.Context, held *recipes.Hold) error {
			if inside++; inside != 1 {
				t.Error("f is called while it runs")
			}
			defer func() { inside-- }()
			turns++
			switch turns {
			case 1:
				return nil
			case 2:
				w.ExpireSession(c.Session().ID())
				<-ctx.Done()
				time.Sleep(time.Minute)
				return errOops // ignored, as the leadership was lost
			case 3:
				if err := held.Release(t.Context()); err != nil {
					t.Error(err)
				}
				return nil
			case 4:
				w.Unplug(c)
				time.AfterFunc(5*time.Minute, func() { w.Plug(c) })
				return nil
			}
			return errOops
		})
		if turns != 5 || !errors.Is(err, errOops) {
			t.Errorf("%d turns, %v", turns, err)
		}
		// f lost something else than its leadership.
		inner := &recipes.Error{Op: "commit", Path: "/other", Err: recipes.ErrNotHeld}
		turns = 0
		err = s.Run(t.Context(), func(context.Context, *recipes.Hold) error {
			if turns++; turns > 1 {
				return errOops
			}
			return inner
		})
		if turns != 1 || !errors.Is(err, inner) {
			t.Errorf("%d turns, %v", turns, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		err = s.Run(ctx, func(ctx context.Context, _ *recipes.Hold) error {
			cancel()
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := s.Run(ctx, func(ctx context.Context, _ *recipes.Hold) error { return errOops }); !errors.Is(err, context.Canceled) || errors.Is(err, errOops) {
			t.Error(err)
		}
		time.Sleep(time.Second)
		w.AssertChildren("/leader")
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := s.Run(t.Context(), func(ctx context.Context, _ *recipes.Hold) error { return errOops }); !errors.Is(err, recipes.ErrClosed) {
			t.Error(err)
		}
	})
}

// TestSelector_Faults has each kind of fault at each request of a selector that leads twice.
func TestSelector_Faults(t *testing.T) {
	recipetest.Steps(t, 1, recipetest.Faults(), func(t testing.TB, s *recipetest.Step) {
		holds := recipetest.NewHoldHistory(1)
		turn := func(d time.Duration) func(context.Context, *recipes.Hold) error {
			return func(ctx context.Context, held *recipes.Hold) error {
				begun := holds.Begin(held.Context(), held.Token(), 1)
				defer begun.End()
				select {
				case <-time.After(d):
				case <-ctx.Done():
				}
				return nil
			}
		}
		var wg sync.WaitGroup
		other := election.NewSelector(s.World.Client(), "/leader", "other")
		wg.Go(func() {
			for range 2 {
				if err := other.Lead(t.Context(), turn(3*time.Second)); err != nil {
					t.Error(err)
				}
			}
		})
		time.Sleep(time.Second)
		s.Arm()
		this := election.NewSelector(s.Client, "/leader", "this")
		for range 2 {
			err := this.Lead(s.Ctx, turn(100*time.Millisecond))
			switch {
			case err == nil, errors.Is(err, recipes.ErrSessionLost) && s.Fault == recipetest.Expire, errors.Is(err, recipes.ErrNotHeld) && s.Fault == recipetest.Expire:
			case s.Ctx.Err() != nil && errors.Is(err, context.Canceled):
			default:
				t.Error(err)
			}
		}
		wg.Wait()
		s.Settle()
		s.AssertChildren("/leader")
		// After a forced end of its session, a leader may learn of the end a moment after another
		// one leads.
		if err := holds.Err(); err != nil && s.Fault != recipetest.Expire {
			t.Error(err)
		}
	})
}
