package recipes_test

import (
	"testing"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
)

func TestShared(t *testing.T) {
	type key string
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c, other := w.Client(), w.Client()
		one := c.Shared(key("a"), func() any { return new(int) })
		if c.Shared(key("a"), func() any { return new(int) }) != one {
			t.Error("make was called twice for one key")
		}
		if c.Namespace("/n").Shared(key("a"), func() any { return new(int) }) == one {
			t.Error("the value is shared between namespaces")
		}
		if c.Namespace("/n").Shared(key("a"), nil) != c.Namespace("/n").Shared(key("a"), nil) {
			t.Error("make was called twice in a namespace")
		}
		if c.Shared("a", func() any { return new(int) }) == one || other.Shared(key("a"), func() any { return new(int) }) == one {
			t.Error("the value is shared with another Client")
		}
	})
}
