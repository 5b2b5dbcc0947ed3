package shared_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes/shared"
)

// TestIDs checks S3.
func TestIDs(t *testing.T) {
	recipetest.Check(t, func(rt *rapid.T) (int, func(t testing.TB, w *recipetest.World)) {
		members := rapid.SampledFrom([]int{1, 1, 3}).Draw(rt, "members")
		troubles := recipetest.Troubles(members).Draw(rt, "troubles")
		block := rapid.Int64Range(1, 5).Draw(rt, "block")
		return members, func(t testing.TB, w *recipetest.World) {
			var (
				wg   sync.WaitGroup
				mu   sync.Mutex
				seen = make(map[int64]bool)
			)
			for range 3 {
				n := shared.NewLong(w.Client(), "/ids", shared.PromotedToLock("/ids-lock"))
				ids := shared.NewIDs(n, block)
				wg.Go(func() {
					for range 15 {
						id, err := ids.Next(t.Context())
						if err != nil {
							t.Error(err)
						}
						mu.Lock()
						if seen[id] {
							t.Errorf("%d twice", id)
						}
						seen[id] = true
						mu.Unlock()
						time.Sleep(100 * time.Millisecond)
					}
					if err := n.Close(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
					}
				})
			}
			w.Apply(troubles)
			wg.Wait()
			if len(seen) != 45 && !t.Failed() {
				t.Errorf("%d", len(seen))
			}
		}
	})
}
