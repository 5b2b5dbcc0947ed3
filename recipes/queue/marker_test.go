package queue_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/queue"
	"github.com/gozkd/gozkd/zktest"
)

// TestRegress_PutOnceWithoutMarker loses the answer to a Put, and deletes the marker that would say
// whether the item was put. The Put must not be repeated: that put the item twice.
func TestRegress_PutOnceWithoutMarker(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		other := w.Client()
		c, h := w.Hooked()
		q := queue.NewSimple(c, "/q")
		if err := q.Put(t.Context(), []byte("a")); err != nil {
			t.Fatal(err)
		}
		h.Arm(func(r recipetest.Request) error {
			switch {
			case r.Op == zktest.Multi && r.N == 1:
				w.DropReply(zktest.Multi)
			case r.Op == zktest.Get:
				if err := other.Delete(t.Context(), r.Path, -1); err != nil {
					t.Error(err)
				}
			}
			return nil
		}, nil)
		if err := q.Put(t.Context(), []byte("b")); !errors.Is(err, recipes.ErrOutcomeUnknown) {
			t.Error(err)
		}
		var items []string
		for path, data := range w.Tree("/q") {
			if path != "/q" {
				items = append(items, data)
			}
		}
		if strings.Count(strings.Join(items, ""), "b") != 1 {
			t.Errorf("items %q", items)
		}
	})
}
