package recipes_test

import (
	"context"
	"testing"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
)

// TestRegress_StaleEvent arms a watch, replaces the znode, and watches the znode again after a
// reply that shows the replacement. The event of the first watch must not fire the second.
func TestRegress_StaleEvent(t *testing.T) {
	replace := []client.Op{client.DeleteOp("/n", -1), client.CreateOp("/n", nil, client.CreateOptions{})}
	for _, kind := range recipetest.Kinds() {
		for name, change := range map[string]func(ctx context.Context, c *recipes.Client) error{
			"own multi": func(ctx context.Context, c *recipes.Client) error {
				_, err := c.Multi(ctx, replace...)
				return err
			},
		} {
			t.Run(string(kind)+"/"+name, func(t *testing.T) {
				recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
					w.Load(map[string]string{"/n": ""})
					c := w.Open(kind)
					for range 200 {
						if _, _, err := c.ExistsW(t.Context(), "/n"); err != nil {
							t.Fatal(err)
						}
						if err := change(t.Context(), c); err != nil {
							t.Fatal(err)
						}
						_, second, err := c.ExistsW(t.Context(), "/n")
						if err != nil {
							t.Fatal(err)
						}
						time.Sleep(time.Millisecond) // until all goroutines of the bubble wait
						select {
						case e := <-second:
							t.Fatalf("the second watch fired: %+v", e)
						default:
						}
					}
				})
			})
		}
	}
}
