package queue_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/queue"
	"github.com/gozkd/gozkd/zktest"
)

// TestSkipped_IsTold checks that a caller learns which items at the head of a queue are passed
// over, and why: from the error of a Take that ctx ended.
func TestSkipped_IsTold(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		hidden := recipes.ACL(proto.ACL{Perms: proto.PermAll &^ proto.PermRead, ID: proto.ID{Scheme: "world", ID: "anyone"}})
		if err := queue.NewSimple(w.Client(), "/q").Put(t.Context(), []byte("first")); err != nil {
			t.Fatal(err)
		}
		if err := queue.NewSimple(w.Client(hidden), "/q").Put(t.Context(), []byte("second")); err != nil {
			t.Fatal(err)
		}
		c := w.Client()
		q := queue.NewSimple(c, "/q")
		const parent = "/q/qn-0000000000"
		if _, err := c.Create(t.Context(), parent+"/child", nil, recipes.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		m, err := q.Take(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, proto.ErrNotEmpty) || !strings.Contains(err.Error(), "2 items") || !strings.Contains(err.Error(), parent) {
			t.Errorf("took %q, and the error does not say what is passed over: %v", m.Data, err)
		}
	})
}

// TestRelease_LostTwice loses an unlock and the answer to the sync after it, with a RetryPolicy
// that never retries. The lock must not stay until the session ends.
func TestRelease_LostTwice(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c, h := w.Hooked(recipes.Retry(recipes.Times(0, 0)))
		q := queue.New(c, "/q", queue.Locks("/q-locks"))
		if err := q.Put(t.Context(), []byte("a")); err != nil {
			t.Fatal(err)
		}
		item, err := q.TakeLocked(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		lost := map[zktest.Op]error{zktest.Multi: proto.ErrConnectionLoss, zktest.Sync: proto.ErrConnectionLoss}
		h.Arm(func(r recipetest.Request) error {
			err := lost[r.Op]
			delete(lost, r.Op)
			return err
		}, nil)
		err = item.Release(t.Context())
		if len(lost) > 0 {
			t.Fatalf("the requests were %v", h.Requests())
		}
		if err != nil {
			t.Errorf("release: %v", err)
		}
		w.AssertChildren("/q-locks")
		if err := item.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
