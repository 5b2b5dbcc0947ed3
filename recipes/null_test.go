package recipes_test

import (
	"testing"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/zktest"
)

// TestNoNull checks that no operation creates a znode with null data: kazoo's recipes decode data
// without a check.
func TestNoNull(t *testing.T) {
	bubbles(t, func(t *testing.T, kind recipetest.Kind) {
		s := zktest.Start(t)
		c := recipetest.Open(t, kind, s.Service, 10*time.Second)
		_, err := c.Create(t.Context(), "/parents/of/this", nil, recipes.CreateOptions{Parents: true})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Create(t.Context(), "/set", []byte("x"), recipes.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Set(t.Context(), "/set", nil, -1); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Multi(t.Context(), client.CreateOp("/multi", nil, client.CreateOptions{}), client.CreateOp("/multi-set", []byte("x"), client.CreateOptions{}),
			client.SetOp("/multi-set", nil, -1)); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/parents", "/parents/of", "/parents/of/this", "/set", "/multi", "/multi-set"} {
			if data, _, err := c.Get(t.Context(), path); err != nil || data == nil || len(data) > 0 {
				t.Errorf("%s has data %v, error %v", path, data, err)
			}
		}
	})
}
