package queue_test

import (
	"strings"
	"testing"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes/queue"
)

// Somebody changes an item after the consumer has read it and before the consumer takes it: the
// consumer gets what it takes, not what it has read.
func TestTake_ItemChangedMeanwhile(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		other := w.Client()
		c, h := w.Hooked()
		p, q := queue.NewSimple(other, "/q"), queue.NewSimple(c, "/q")
		if err := p.Put(t.Context(), []byte("old")); err != nil {
			t.Fatal(err)
		}
		var item string
		for name := range w.Tree("/q") {
			if name != "/q" {
				item = name
			}
		}
		changed := false
		h.Arm(func(r recipetest.Request) error {
			if !changed && (r.String() == "delete" || r.String() == "multi") && strings.HasPrefix(r.Path, "/q") {
				changed = true
				if _, err := other.Set(t.Context(), item, []byte("new"), -1); err != nil {
					t.Error(err)
				}
			}
			return nil
		}, nil)
		m, ok, err := q.TryTake(t.Context())
		if err != nil || !ok || string(m.Data) != "new" {
			t.Errorf("took %q, %v, %v; want the item as it was changed to", m.Data, ok, err)
		}
		if !changed {
			t.Errorf("%s was not changed, so this test shows nothing: %v", item, h.Requests())
		}
	})
}
