package queue_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/queue"
	"github.com/gozkd/gozkd/zktest"
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

// TestItem_ReleasedAtOnce checks that of two Releases at the same time one deletes the lock, and
// that the other leaves the lock of the next holder alone, which has the same name and session.
func TestItem_ReleasedAtOnce(t *testing.T) {
	for _, suspended := range []bool{false, true} {
		recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
			c, hooks := w.Hooked(recipes.EndHoldsWhenSuspended())
			q := queue.New(c, "/q", queue.Locks("/q-locks"))
			if err := q.Put(t.Context(), []byte("a")); err != nil {
				t.Fatal(err)
			}
			i, err := q.TakeLocked(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if suspended {
				w.Unplug(c)
				<-i.Context().Done()
				w.Plug(c)
			}
			// A request that deletes a lock waits long enough for the next Take.
			hooks.Arm(func(r recipetest.Request) error {
				if r.Op == zktest.Multi && strings.HasPrefix(r.Path, "/q-members/") {
					time.Sleep(time.Second)
				}
				return nil
			}, nil)
			var releasing sync.WaitGroup
			for range 2 {
				releasing.Go(func() {
					if err := i.Release(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			next, err := q.TakeLocked(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			releasing.Wait()
			hooks.Arm(nil, nil)
			if err := next.Done(t.Context()); err != nil {
				t.Errorf("suspended %v: %v", suspended, err)
			}
		})
	}
}
