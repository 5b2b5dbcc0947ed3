package election_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/election"
)

// TestE1_E2_E5 runs candidates of both kinds with faults: at most one leader's Context is alive,
// tokens rise, nothing is left, and without faults leaders follow each other again.
func TestE1_E2_E5(t *testing.T) {
	recipetest.Check(t, func(rt *rapid.T) (int, func(t testing.TB, w *recipetest.World)) {
		// three members take five times as long
		servers := rapid.SampledFrom([]int{1, 1, 1, 3}).Draw(rt, "servers")
		latches := rapid.IntRange(0, 3).Draw(rt, "latches")
		selectors := 3 - latches
		stays := time.Duration(rapid.SampledFrom([]int{200, 1000, 5000}).Draw(rt, "stays")) * time.Millisecond
		troubles := recipetest.Troubles(servers).Draw(rt, "troubles")
		for i, x := range troubles {
			if x.What == "expire" {
				// A client cannot foresee a forced end of its session. Here the session expires, as
				// it does in production.
				troubles[i].What, troubles[i].Lasts = "unplug", 2*recipetest.Timeout
			}
		}
		return servers, func(t testing.TB, w *recipetest.World) {
			holds := recipetest.NewHoldHistory(1)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var wg sync.WaitGroup
			turn := func(ctx context.Context, held *recipes.Hold) error {
				defer holds.Begin(held.Context(), held.Token(), 1).End()
				select {
				case <-time.After(stays):
				case <-ctx.Done():
				}
				return nil
			}
			for range selectors {
				s := election.NewSelector(w.Client(), "/leader", "selector")
				wg.Go(func() { _ = s.Run(ctx, turn) }) // Run only ends with ctx
			}
			for range latches {
				l := election.NewLatch(w.Client(), "/leader", "latch")
				begin(l)
				wg.Go(func() {
					for {
						held, err := l.Await(ctx)
						if err != nil {
							break
						}
						_ = turn(held.Context(), held)
						_ = held.Release(ctx) // continues in the background after ctx
					}
					_ = l.Close() // continues in the background after ctx
				})
			}
			w.Apply(troubles)
			time.Sleep(3 * recipetest.Timeout / 2)
			before := holds.Len()
			time.Sleep(6 * time.Second)
			if holds.Len() < before+1 {
				t.Error("without faults nobody leads")
			}
			cancel()
			wg.Wait()
			time.Sleep(time.Second)
			for path := range w.Tree("/") {
				if strings.HasPrefix(path, "/leader/") {
					t.Errorf("%s still exists", path)
				}
			}
			if err := holds.Err(); err != nil {
				t.Error(err)
			}
		}
	})
}
