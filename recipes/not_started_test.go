package recipes_test

import (
	"context"
	"errors"
	"testing"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/cache"
	"github.com/gozkd/gozkd/recipes/discovery"
	"github.com/gozkd/gozkd/recipes/election"
	"github.com/gozkd/gozkd/recipes/group"
)

// TestNotStarted checks that waiting for something that was not started is an error at once.
func TestNotStarted(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c := w.Client()
		for name, wait := range map[string]func(ctx context.Context) error{
			"latch": func(ctx context.Context) error {
				_, err := election.NewLatch(c, "/l", "a").Await(ctx)
				return err
			},
			"cache": cache.NewTree(c, "/t", cache.TreeOptions{}).Wait,
			"view":  group.New(c, "/g").View().Wait,
			"znode": func(ctx context.Context) error {
				_, err := group.NewPersistentZnode(c, "/z", nil, recipes.CreateOptions{}).Wait(ctx)
				return err
			},
			"provider": discovery.New[struct{}](c, "/d").Provider("s", discovery.RoundRobin[struct{}](), discovery.DownPolicy{}).Wait,
		} {
			if err := wait(t.Context()); !errors.Is(err, recipes.ErrNotStarted) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
