package recipes_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/recipetest"
)

// TestBackground is that Close lets what is in the background come to its end, with requests that it has not begun yet, and waits no longer
// than it must for what doesn't.
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
				t.Errorf("ended: %v, after %v", ended, took)
			}
			w.AssertExists("/late", "/later")
			if _, err := c.Create(t.Context(), "/none", nil, recipes.CreateOptions{}); !errors.Is(err, recipes.ErrClosed) {
				t.Error(err)
			}
			if err := c.Background(t.Context(), func(context.Context) { t.Error("it runs") }); !errors.Is(err, recipes.ErrClosed) {
				t.Error(err)
			}
		})
	}
}
