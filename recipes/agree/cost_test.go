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

// Curator and kazoo have no counterpart. The first in line does not watch its own place.
func TestCost_Transaction(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		ctx := t.Context()
		c, h := w.Hooked()
		tx := agree.NewTransaction(c, "/tx")
		var begun *agree.Participant
		var p *agree.Participant
		cost(t, h, "begin", 4, "multi, get, create, get", func() (err error) {
			begun, err = tx.Begin(ctx, nil, "a")
			return err
		})
		cost(t, h, "join", 5, "sync, get, create, get, exists", func() (err error) {
			p, err = tx.Join(ctx, "a")
			return err
		})
		cost(t, h, "vote", 1, "multi", func() error { return p.Vote(ctx, agree.Commit) })
		cost(t, h, "decide", 6, "get+watch, children, children+watch, children, get+watch, set", func() error {
			_, err := begun.Outcome(ctx)
			return err
		})
		cost(t, h, "outcome", 1, "get+watch", func() error {
			_, err := p.Outcome(ctx)
			return err
		})
		cost(t, h, "done", 2, "delete, delete", func() error { return p.Done(ctx) })
	})
}

func TestCost_Rendezvous(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c, h := w.Hooked()
		w.Load(map[string]string{"/r": ""})
		r := agree.NewRendezvous(c, "/r")
		cost(t, h, "host", 3, "children, create, children, get+watch", func() error {
			_, err := r.Meet(t.Context(), nil)
			return err
		})
		cost(t, h, "guest", 2, "children, get+watch", func() error { // the watch is shared with the host, which is the same client
			m, err := r.Meet(t.Context(), nil)
			if err != nil {
				return err
			}
			return m.Close()
		})
	})
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
