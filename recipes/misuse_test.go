package recipes_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/barrier"
	"github.com/gozkd/gozkd/recipes/discovery"
	"github.com/gozkd/gozkd/recipes/group"
	"github.com/gozkd/gozkd/recipes/lock"
	"github.com/gozkd/gozkd/recipes/queue"
	"github.com/gozkd/gozkd/recipes/shared"
)

// TestMisuse: arguments that cannot be meant are refused, before anything is held or written.
func TestMisuse(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c, ctx := w.Client(nil), t.Context()
		_ = shared.NewValue(c, "/value", nil)
		_ = queue.New(c, "/queue", nil)
		m := lock.NewMutex(c, "/lock", nil)
		d := discovery.New[string](c, "/services")
		_, ttl := c.Create(ctx, "/ttl", nil, recipes.CreateOptions{TTL: time.Microsecond})
		_, negative := c.Create(ctx, "/ttl", nil, recipes.CreateOptions{TTL: -time.Hour})
		_, lease := shared.NewLease(c, "/lease", "a", 0).Obtain(ctx)
		for what, err := range map[string]error{
			"ttl": ttl, "negative ttl": negative, "lease": lease,
			"mutex":      m.With(ctx, nil),
			"multi":      lock.NewMulti(m).With(ctx, nil),
			"semaphore":  lock.NewSemaphore(c, "/semaphore", 1, nil).With(ctx, nil),
			"with lease": shared.NewLease(c, "/lease", "a", time.Hour).With(ctx, nil),
			"barrier":    barrier.NewDouble(c, "/barrier", 1, "a").With(ctx, nil),
			"group":      group.New(c, "/group").With(ctx, "a", nil, nil),
			"instance":   d.With(ctx, discovery.Instance[string]{Name: "a"}, nil),
		} {
			if !errors.Is(err, recipes.ErrArgument) {
				t.Errorf("%s: %v", what, err)
			}
		}
		w.AssertChildren("/", "zookeeper")
		func() {
			defer func() {
				if recover() == nil {
					t.Error("two locks of a path are one Multi")
				}
			}()
			lock.NewMulti(m, lock.NewMutex(c, "/lock", nil))
		}()
		p := d.Provider("a", nil, discovery.DownPolicy{})
		if err := p.Start(ctx); err != nil {
			t.Error(err)
		}
		in := discovery.Instance[string]{Name: "a", ID: "1"}
		r, err := d.Register(ctx, in)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if got, err := p.Instance(); err != nil || got.ID != "1" {
			t.Errorf("%+v, %v", got, err)
		}
		if _, _, err := c.Get(ctx, "/"+strings.Repeat("x", 500_000)); len(err.Error()) > 2000 {
			t.Errorf("an error of %d bytes", len(err.Error()))
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if _, err := c.AwaitSession(ctx); err == nil || err.Error() != "recipes: await session: recipes: closed" {
			t.Error(err)
		}
	})
}
