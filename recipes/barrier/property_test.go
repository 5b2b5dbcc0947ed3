package barrier_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes/barrier"
)

// TestB2_B3_B4 runs members through rounds with faults: nobody enters early, nobody leaves early,
// nothing is left, and without faults the rounds continue.
func TestB2_B3_B4(t *testing.T) {
	recipetest.Check(t, func(rt *rapid.T) (int, func(t testing.TB, w *recipetest.World)) {
		// three members take five times as long
		servers := rapid.SampledFrom([]int{1, 1, 1, 3}).Draw(rt, "servers")
		members := rapid.IntRange(1, 3).Draw(rt, "members")
		more := rapid.IntRange(0, 1).Draw(rt, "more")
		patience := time.Duration(rapid.SampledFrom([]int{900, 3000, 60000}).Draw(rt, "patience")) * time.Millisecond
		troubles := recipetest.Troubles(servers).Draw(rt, "troubles")
		for i, x := range troubles {
			if x.What == "expire" {
				// A client cannot foresee a forced end of its session. Here the session expires, as
				// it does in production.
				troubles[i].What, troubles[i].Lasts = "unplug", 2*recipetest.Timeout
			}
		}
		return servers, func(t testing.TB, w *recipetest.World) {
			att := newAttendance(members, 200*time.Millisecond)
			stop, cancel := context.WithCancel(t.Context())
			defer cancel()
			patient := make(chan struct{})
			var wg sync.WaitGroup
			for range members + more {
				d := barrier.NewDouble(w.Client(), "/both", members, "")
				wg.Go(func() {
					for stop.Err() == nil {
						ctx, cancel := context.WithCancel(stop)
						late := time.AfterFunc(patience, func() {
							select {
							case <-patient:
							default:
								cancel()
							}
						})
						att.once(ctx, d)
						late.Stop()
						cancel()
					}
				})
			}
			w.Apply(troubles)
			close(patient)
			att.slower()
			time.Sleep(lingers) // until background work is done
			before := att.rounds()
			time.Sleep(5 * time.Second)
			if got := att.rounds() - before; got < members*2 {
				t.Errorf("without faults, %d rounds in 5 s", got)
			}
			cancel()
			wg.Wait()
			time.Sleep(time.Second)
			for path := range w.Tree("/") {
				if strings.HasPrefix(path, "/both/") && path != "/both/ready" {
					t.Errorf("%s still exists", path)
				}
			}
			if err := att.err(); err != nil {
				t.Error(err)
			}
		}
	})
}
