package agree_test

import (
	"testing"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes/agree"
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

// kazoo sends the same requests per part, one part after the other, and first ensures the lock's
// path: 3 round trips per part instead of 2 for all.
func TestCost_Partitioner(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		ctx := t.Context()
		c, h := w.Hooked()
		w.Load(map[string]string{"/p/party": "", "/p/locks/p0": "", "/p/locks/p1": ""})
		var r round
		got := h.Cost(func() {
			rounds, _ := run(ctx, agree.NewPartitioner(c, "/p", parts[:2], "anna", 0))
			r = <-rounds
		})
		if got.RoundTrips != 4 || len(got.Requests) != 1+5+2 { // and a watch for each lock, in the background
			t.Errorf("%d round trips, %s", got.RoundTrips, got.Ops())
		}
		cost(t, h, "leave", 2, "delete, delete, delete", r.leave)
	})
}
