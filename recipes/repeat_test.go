package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/lock"
	"github.com/gozkd/gozkd/zktest"
)

func TestRepeat(t *testing.T) {
	sequential := func(ctx context.Context, c *recipes.Client) error {
		_, err := c.Create(ctx, "/n-", nil, recipes.CreateOptions{Sequential: true}) // not retried by Create
		return err
	}
	fails := func(err error) func(context.Context, *recipes.Client) error {
		return func(context.Context, *recipes.Client) error { return fmt.Errorf("step 2: %w", err) }
	}
	for _, tc := range []struct {
		name  string
		f     func(ctx context.Context, c *recipes.Client) error
		lose  int // replies to creates
		calls int
		want  error
	}{
		{"lost reply", sequential, 1, 2, nil},
		{"the policy stops", sequential, 9, 4, recipes.ErrOutcomeUnknown},
		{"session lost", fails(recipes.ErrSessionLost), 0, 4, recipes.ErrSessionLost},
		{"no server", fails(recipes.ErrNoServer), 0, 4, recipes.ErrNoServer},
		{"refused", func(ctx context.Context, c *recipes.Client) error { return c.Delete(ctx, "/none", -1) }, 0, 1, proto.ErrNoNode},
		{"its own error", fails(errRepeat), 0, 1, errRepeat},
		{"closed", fails(recipes.ErrClosed), 0, 1, recipes.ErrClosed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
				c := w.Client(recipes.Retry(recipes.Times(3, time.Second)))
				for range tc.lose {
					w.DropReply(zktest.Create)
				}
				calls := 0
				err := c.Repeat(t.Context(), func(ctx context.Context) error {
					calls++
					return tc.f(ctx, c)
				})
				w.ClearFaults()
				if !errors.Is(err, tc.want) || calls != tc.calls {
					t.Errorf("after %d calls: %v; want %v after %d", calls, err, tc.want, tc.calls)
				}
			})
		})
	}
}

var errRepeat = errors.New("not of a request")

// TestRepeat_CtxEnds: the end of ctx ends the pause, and the last error is returned.
func TestRepeat_CtxEnds(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c := w.Client(recipes.Retry(recipes.Forever(time.Hour)))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		err := c.Repeat(ctx, func(context.Context) error { return recipes.ErrNoServer })
		if took := time.Since(began); !errors.Is(err, recipes.ErrNoServer) || took != time.Minute {
			t.Errorf("%v after %v, want %v after a minute", err, took, recipes.ErrNoServer)
		}
	})
}

// An operation that notices the loss of its session through a context of a Hold is repeated.
func TestRepeat_HoldLost(t *testing.T) {
	for name, write := range map[string]func(in context.Context, c *recipes.Client, held *lock.Lock) error{
		"request": func(in context.Context, c *recipes.Client, held *lock.Lock) error {
			_, err := c.Set(in, "/", nil, -1)
			return err
		},
		"cause": func(in context.Context, c *recipes.Client, held *lock.Lock) error { return context.Cause(in) },
	} {
		t.Run(name, func(t *testing.T) {
			recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
				c := w.Client(recipes.Retry(recipes.Forever(time.Second)))
				calls := 0
				err := c.Repeat(t.Context(), func(ctx context.Context) error {
					calls++
					held, err := lock.NewMutex(c, "/lock", nil).Lock(ctx)
					if err != nil {
						return err
					}
					defer func() { _ = held.Release(ctx) }() // of a session that was lost, if it fails
					in, cancel := held.Within(ctx)
					defer cancel()
					if calls == 1 {
						w.Unplug(c)
						<-in.Done()
						w.Plug(c)
						err = write(in, c, held)
						return err
					}
					return nil
				})
				if err != nil || calls != 2 {
					t.Errorf("after %d calls: %v", calls, err)
				}
			})
		})
	}
	t.Run("With", func(t *testing.T) {
		recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
			c := w.Client(recipes.Retry(recipes.Forever(time.Second)))
			calls := 0
			err := c.Repeat(t.Context(), func(ctx context.Context) error {
				return lock.NewMutex(c, "/lock", nil).With(ctx, func(ctx context.Context) error {
					if calls++; calls == 1 {
						w.Unplug(c)
						<-ctx.Done()
						w.Plug(c)
						return ctx.Err()
					}
					return nil
				})
			})
			if err != nil || calls != 2 {
				t.Errorf("after %d calls: %v", calls, err)
			}
		})
	})
}
