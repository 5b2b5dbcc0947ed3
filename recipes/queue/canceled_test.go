package queue_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes/queue"
)

// TestCanceled_Unplugged checks that a Put that waits for room, and a Handle, return when ctx ends
// although there is no connection, and that what they had is free again once there is a connection.
func TestCanceled_Unplugged(t *testing.T) {
	for _, op := range []string{"put", "handle"} {
		recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
			c := w.Client()
			q := queue.New(c, "/q", queue.Locks("/q-locks"), queue.MaxItems(1))
			if err := q.Put(t.Context(), []byte("a")); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			lose := func() {
				w.Unplug(c)
				time.Sleep(100 * time.Millisecond) // until the connection notices
				cancel()
			}
			done := make(chan error, 1)
			// Ends with ctx, at the latest when there is a connection again; awaited below.
			go func() {
				if op == "put" {
					done <- q.Put(ctx, []byte("b"))
					return
				}
				done <- q.Handle(ctx, func(ctx context.Context, _ *queue.Item) error {
					lose()
					return ctx.Err()
				})
			}()
			if op == "put" {
				time.Sleep(time.Second)
				lose()
			}
			time.Sleep(time.Second)
			select {
			case err := <-done:
				if !errors.Is(err, context.Canceled) {
					t.Errorf("%s: %v", op, err)
				}
			default:
				t.Errorf("%s has not returned a second after the end of ctx", op)
			}
			w.Plug(c)
			soon, stop := context.WithTimeout(t.Context(), 5*time.Second) // before the session could expire
			defer stop()
			other := queue.New(w.Client(), "/q", queue.Locks("/q-locks"), queue.MaxItems(1))
			i, err := other.TakeLocked(soon)
			if err != nil {
				t.Fatalf("%s: %v", op, err)
			}
			if err := errors.Join(i.Done(soon), other.Put(soon, []byte("c"))); err != nil {
				t.Errorf("%s: %v", op, err)
			}
		})
	}
}
