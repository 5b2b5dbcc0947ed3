package once_test

import (
	"errors"
	"testing"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/once"
	"github.com/gozkd/gozkd/recipes/internal/recipetest"
	"github.com/gozkd/gozkd/zktest"
)

// TestDo_SessionGone: the answer is lost, and the session, and with it the marker, ends before anybody could look. Its absence says nothing then.
func TestDo_SessionGone(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		w.Load(map[string]string{"/dir": ""})
		c, h := w.Hooked()
		session := c.Session().ID()
		o := once.New(c, "/dir")
		h.Arm(func(r recipetest.Request) error {
			switch {
			case r.Op == zktest.Multi && r.N == 1:
				w.DropReply(zktest.Multi)
			case r.Op == zktest.Sync:
				w.ExpireSession(session)
			}
			return nil
		}, nil)
		if _, err := o.Do(t.Context(), append1("item-")); !errors.Is(err, recipes.ErrOutcomeUnknown) {
			t.Error(err)
		}
		if items, _ := written(w, "item-"); items != 1 {
			t.Errorf("%d items", items)
		}
	})
}
