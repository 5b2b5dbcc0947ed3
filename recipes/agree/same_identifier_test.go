package agree_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes/agree"
)

// TestPartitioner_SameIdentifier checks A1 and A2 for members with the same identifier: neither
// blocks the other, or itself.
func TestPartitioner_SameIdentifier(t *testing.T) {
	for range 5 { // the rest of their names is random
		recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
			parts := []string{"a", "b", "c", "d", "e"}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var mu sync.Mutex
			var all []string
			var wg sync.WaitGroup
			var leaves []func() error
			for range 2 {
				p := agree.NewPartitioner(w.Client(), "/p", parts, "x", time.Second)
				rounds, leave := run(ctx, p)
				leaves = append(leaves, leave)
				wg.Go(func() {
					select {
					case r := <-rounds:
						mu.Lock()
						defer mu.Unlock()
						all = append(all, r.parts()...)
					case <-ctx.Done():
						t.Error(ctx.Err())
					}
				})
			}
			wg.Wait()
			for _, leave := range leaves {
				if err := leave(); err != nil {
					t.Error(err)
				}
			}
			if slices.Sort(all); !slices.Equal(all, parts) {
				t.Errorf("%q are in a share", all)
			}
		})
	}
}
