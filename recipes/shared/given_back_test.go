package shared_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/shared"
)

// With releases the lease also if ctx has ended meanwhile.
func TestLease_WithEnded(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		ctx, cancel := context.WithCancel(t.Context())
		err := shared.NewLease(w.Client(), "/lease", "a", time.Hour).With(ctx, func(context.Context) error {
			cancel()
			return nil
		})
		if !errors.Is(err, context.Canceled) || !errors.Is(err, recipes.ErrOutcomeUnknown) {
			t.Error(err)
		}
		time.Sleep(2 * time.Second)
		if _, err := shared.NewLease(w.Client(), "/lease", "b", time.Hour).Obtain(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
