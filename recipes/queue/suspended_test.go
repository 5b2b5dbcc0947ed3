package queue_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/queue"
)

// TestItem_Suspended checks that an item whose hold ended with the connection, and not with the
// session, becomes available to others.
func TestItem_Suspended(t *testing.T) {
	for _, end := range []string{"done", "release"} {
		recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
			c := w.Client(recipes.EndHoldsWhenSuspended())
			q := queue.New(c, "/q", queue.Locks("/q-locks"))
			if err := q.Put(t.Context(), []byte("a")); err != nil {
				t.Fatal(err)
			}
			i, err := q.TakeLocked(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			w.Unplug(c)
			<-i.Context().Done()
			w.Plug(c)
			if end == "done" {
				if err := i.Done(t.Context()); !errors.Is(err, recipes.ErrNotHeld) {
					t.Error(err)
				}
			}
			if err := i.Release(t.Context()); err != nil {
				t.Error(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			next, err := queue.New(w.Client(), "/q", queue.Locks("/q-locks")).TakeLocked(ctx)
			if err != nil {
				t.Fatalf("%s: %v", end, err)
			}
			// A second Release must not release the lock of the next holder.
			if err := i.Release(t.Context()); err != nil {
				t.Error(err)
			}
			if err := next.Done(t.Context()); err != nil {
				t.Errorf("%s: %v", end, err)
			}
		})
	}
}
