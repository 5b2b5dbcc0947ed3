package recipes_test

import (
	"testing"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
)

func TestShared(t *testing.T) {
	type key string
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c, other := w.Client(), w.Client()
		value := func(c *recipes.Client) *int {
			return recipes.Shared(c, key("a"), func() *int { return new(int) })
		}
		one := value(c)
		if value(c) != one {
			t.Error("create was called twice for one key")
		}
		if value(c.Namespace("/n")) == one {
			t.Error("the value is shared between namespaces")
		}
		if first, again := value(c.Namespace("/n")), value(c.Namespace("/n")); first != again {
			t.Error("create was called twice in a namespace")
		}
		if recipes.Shared(c, "a", func() *int { return new(int) }) == one || value(other) == one {
			t.Error("the value is shared with another Client")
		}
	})
}
