package shared_test

import (
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes/shared"
)

// cost reports an error if the requests of f differ.
func cost(t testing.TB, h *recipetest.Hooks, what string, trips int, ops string, f func() error) {
	t.Helper()
	c := h.Cost(func() {
		if err := f(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	})
	if c.RoundTrips != trips || c.Ops() != ops {
		t.Errorf("%s: %d round trips, %s; want %d, %s", what, c.RoundTrips, c.Ops(), trips, ops)
	}
}

// A change costs a get and a multi, like the get and setData of Curator's
// DistributedAtomicValue.tryOnce and kazoo's Counter._inner_change. The first change in a session
// costs no more, because the same multi creates the marker.
func TestCost_Number(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c, h := w.Hooked()
		ctx := t.Context()
		n := shared.NewLong(c, "/n")
		add := func() error { return second(n.Add(ctx, 1)) }
		cost(t, h, "the first of all", 2, "get, multi", add)
		cost(t, h, "add", 2, "get, multi", add)
		// SharedCount.setCount and trySetCount: setData.
		cost(t, h, "set", 1, "multi", func() error { return n.Set(ctx, 9) })
		old, err := n.Get(ctx)
		if err != nil {
			t.Fatal(err)
		}
		cost(t, h, "compare and set", 1, "multi", func() error {
			_, _, err := n.CompareAndSet(ctx, old, 10)
			return err
		})
		cost(t, h, "close", 1, "delete", func() error { return n.Close() })
		// Curator: create, NoNode, exists for each ancestor, create for each missing one, create.
		deep := shared.NewLong(c, "/a/b/n")
		cost(t, h, "without parents", 6, "get, multi, create, create, create, multi", func() error { return second(deep.Add(ctx, 1)) })
		ids := shared.NewIDs(n, 10)
		cost(t, h, "ids", 2, "get, multi", func() error {
			for range 10 {
				if _, err := ids.Next(ctx); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// kazoo sends ensure_path, create and get_children for the lock, exists, get, delete, create, and
// the lock's delete: 8 requests, or 7 if there is no lease yet.
func TestCost_Lease(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c, h := w.Hooked()
		w.Load(map[string]string{"/l": ""})
		for range 2 {
			cost(t, h, "obtain", 6, "get, create, children, get, get+watch, multi, delete", func() error {
				return second(shared.NewLease(c, "/l", "anna", time.Minute).Obtain(t.Context()))
			})
		}
		cost(t, h, "taken", 1, "get", func() error {
			if _, err := shared.NewLease(c, "/l", "bert", time.Minute).Obtain(t.Context()); err == nil {
				t.Error("it is taken")
			}
			return nil
		})
	})
}
