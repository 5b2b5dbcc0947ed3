package gozk_test

import (
	"errors"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
)

func TestMain(m *testing.M) { recipetest.Main(m) }

// TestErrors_OfBothPackages: an error of a Client is that of package proto and that of
// go-zookeeper, whatever the Client runs on.
func TestErrors_OfBothPackages(t *testing.T) {
	for _, kind := range recipetest.Kinds() {
		recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
			w.Load(map[string]string{"/a": "", "/a/b": ""})
			c := w.Open(kind, recipes.Retry(recipes.Times(0, 0)))
			for want, err := range map[[2]error]error{
				{proto.ErrNoNode, zk.ErrNoNode}:         c.Delete(t.Context(), "/none", -1),
				{proto.ErrNotEmpty, zk.ErrNotEmpty}:     c.Delete(t.Context(), "/a", -1),
				{proto.ErrBadVersion, zk.ErrBadVersion}: c.Delete(t.Context(), "/a/b", 7),
			} {
				if !errors.Is(err, want[0]) || !errors.Is(err, want[1]) {
					t.Errorf("%s: %v is not both of %v", kind, err, want)
				}
			}
		})
	}
	if !errors.Is(recipes.ErrNoServer, zk.ErrNoServer) || errors.Is(recipes.ErrNoServer, zk.ErrNoNode) {
		t.Error("recipes.ErrNoServer is not zk.ErrNoServer, or is another error")
	}
}
