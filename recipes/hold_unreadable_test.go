package recipes_test

import (
	"errors"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/lock"
)

// TestHold_Unreadable checks that a Hold whose ACL forbids READ is looked at rarely, and ends after
// somebody deletes its znode.
func TestHold_Unreadable(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c, h := w.Hooked(recipes.ACL(proto.ACL{Perms: proto.PermAll &^ proto.PermRead, ID: proto.ID{Scheme: "world", ID: "anyone"}}))
		if _, err := w.Client().Create(t.Context(), "/l", nil, recipes.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		held, err := lock.NewMutex(c, "/l", nil).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		h.Arm(nil, nil)
		time.Sleep(2 * recipetest.Timeout)
		if n := len(h.Requests()); n > 7 || held.Context().Err() != nil {
			t.Errorf("%d requests in two session timeouts, %v", n, held.Context().Err())
		}
		if err := w.Client().Delete(t.Context(), held.Path(), -1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(recipetest.Timeout)
		if held.Context().Err() == nil {
			t.Error("the znode was deleted, and the Hold lasts")
		}
		if err := held.Release(t.Context()); err != nil && !errors.Is(err, recipes.ErrNotHeld) {
			t.Error(err)
		}
	})
}
