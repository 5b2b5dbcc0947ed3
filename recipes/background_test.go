package recipes_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
)

// TestBackground checks that Close lets background work finish, including requests that the work
// has not sent yet, and does not wait longer than needed for work that does not finish.
func TestBackground(t *testing.T) {
	for _, kind := range recipetest.Kinds() {
		recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
			c := w.Open(kind)
			ended := false
			if err := c.Background(t.Context(), func(ctx context.Context) {
				time.Sleep(time.Second)
				if _, err := c.Create(ctx, "/late", nil, recipes.CreateOptions{}); err != nil {
					t.Error(err)
				}
				if err := c.Background(ctx, func(ctx context.Context) {
					if _, err := c.Create(ctx, "/later", nil, recipes.CreateOptions{}); err != nil {
						t.Error(err)
					}
					<-ctx.Done()
					if err := c.Delete(ctx, "/late", -1); !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
					ended = true
				}); err != nil {
					t.Error(err)
				}
			}); err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			if took := time.Since(begun); !ended || took < time.Second || took > recipetest.Timeout/2 {
				t.Errorf("background work ended: %v; Close took %v", ended, took)
			}
			w.AssertExists("/late", "/later")
			if _, err := c.Create(t.Context(), "/none", nil, recipes.CreateOptions{}); !errors.Is(err, recipes.ErrClosed) {
				t.Error(err)
			}
			if err := c.Background(t.Context(), func(context.Context) { t.Error("f runs after Close") }); !errors.Is(err, recipes.ErrClosed) {
				t.Error(err)
			}
		})
	}
}
