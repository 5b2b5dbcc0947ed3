package group_test

import (
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/group"
)

// TestCost compares with the requests of Curator 5.8 and kazoo 2.10, taken from their sources.
func TestCost(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c, h := w.Hooked()
		w.Load(map[string]string{"/group": "", "/group/x": "", "/party": "", "/party/x__party__": "", "/party/y__party__": ""})
		var (
			g       = group.New(c, "/group")
			party   = group.NewParty(c, "/party")
			shallow = group.NewShallowParty(c, "/party")
			m       *group.PersistentZnode
			n       = group.NewPersistentZnode(c, "/ttl", nil, recipes.CreateOptions{TTL: time.Hour})
		)
		for _, x := range []struct {
			name string
			do   func() error
			cost int
			ops  string
		}{
			// PersistentNode.createNode and watchNode: create, exists+watch. kazoo's _inner_join:
			// exists, create.
			{"join", func() (err error) { m, err = g.Join(t.Context(), "a", nil); return err }, 1, "create, exists+watch"},
			// PersistentNode.setData, and its watcher: set, exists+watch.
			{"set", func() error { return m.SetData(t.Context(), []byte("x")) }, 1, "set, exists+watch"},
			// PersistentNode.deleteNode: delete and removeWatches. kazoo's _inner_leave: delete. A
			// multi is used because the Client never repeats it unchecked.
			{"leave", func() error { return m.Close() }, 1, "multi"},
			// Curator shows its cache, as View does.
			{"members", func() error { _, err := g.Members(t.Context()); return err }, 2, "children, get"},
			// Party.__iter__: children, then the gets one after the other.
			{"party", func() error { _, err := party.Members(t.Context()); return err }, 2, "children, get, get"},
			// ShallowParty.__iter__: children.
			{"shallow", func() error { _, err := shallow.Members(t.Context()); return err }, 1, "children"},
			// PersistentTtlNode: create, exists+watch, and set and create of the child only after
			// half a TTL.
			{"ttl", func() error { _ = n.Start(t.Context()); _, err := n.Wait(t.Context()); return err }, 1, "create, exists+watch, create"},
		} {
			cost := h.Cost(func() {
				if err := x.do(); err != nil {
					t.Fatal(err)
				}
			})
			if cost.RoundTrips != x.cost || cost.Ops() != x.ops {
				t.Errorf("%s: %d round trips, %s; want %d, %s", x.name, cost.RoundTrips, cost.Ops(), x.cost, x.ops)
			}
		}
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
}
