package queue_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/queue"
	"github.com/gozkd/gozkd/zktest"
)

// TestThrottled lets a server refuse requests for longer than the RetryPolicy allows, while an item
// returns to the queue: from a caller that gave up, or from a holder. The item must be free
// afterwards, although the session lives on.
func TestThrottled(t *testing.T) {
	for _, what := range []string{"taken", "locked"} {
		scenario := func(t testing.TB, w *recipetest.World) {
			c := w.Client(recipes.Retry(recipes.Times(2, 10*time.Millisecond)))
			q := queue.New(c, "/q", queue.Locks("/q-locks"))
			if err := q.Put(t.Context(), []byte("a")); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			throttle := func() { w.FailNext(zktest.Multi, proto.ErrThrottledOp, zktest.Times(4)) }
			if what == "locked" {
				i, err := q.TakeLocked(ctx)
				if err != nil {
					t.Fatal(err)
				}
				throttle()
				if err := i.Release(t.Context()); err != nil {
					t.Error(err)
				}
			} else {
				w.Delay(zktest.Multi, 2*time.Second)
				if _, err := q.Take(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				throttle()
				time.Sleep(time.Minute)
			}
			ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if m, err := queue.New(w.Client(), "/q", queue.Locks("/q-locks")).Take(ctx); err != nil || string(m.Data) != "a" {
				t.Errorf("%q, %v", m.Data, err)
			}
		}
		t.Run(what, func(t *testing.T) { recipetest.Run(t, 1, scenario) })
	}
}
