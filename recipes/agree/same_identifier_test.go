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

// TestPartitioner_SameIdentifier checks A6 and A7 for members with the same identifier: neither
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
			for range 2 {
				p := agree.NewPartitioner(w.Client(), "/p", parts, "x", time.Second)
				m, err := p.Join(ctx)
				if err != nil {
					t.Fatal(err)
				}
				wg.Go(func() {
					s, err := m.Acquire(ctx)
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					defer mu.Unlock()
					all = append(all, s.Parts...)
				})
			}
			wg.Wait()
			if slices.Sort(all); !slices.Equal(all, parts) {
				t.Errorf("%q are in a share", all)
			}
		})
	}
}
