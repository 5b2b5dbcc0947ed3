package barrier_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/recipes/barrier"
	"github.com/gozkd/gozkd/recipes/internal/recipetest"
)

// TestB2_B3_B4 has members go through rounds while all kinds of things happen: nobody comes in early, nobody leaves early, nothing is
// left, and when all is well again, rounds go on.
func TestB2_B3_B4(t *testing.T) {
	recipetest.Check(t, func(rt *rapid.T) (int, func(t testing.TB, w *recipetest.World)) {
		servers := rapid.SampledFrom([]int{1, 1, 1, 3}).Draw(rt, "servers") // three take five times as long
		members := rapid.IntRange(1, 3).Draw(rt, "members")
		more := rapid.IntRange(0, 1).Draw(rt, "more")
		patience := time.Duration(rapid.SampledFrom([]int{900, 3000, 60000}).Draw(rt, "patience")) * time.Millisecond
		troubles := recipetest.Troubles(servers).Draw(rt, "troubles")
		for i, x := range troubles {
			if x.What == "expire" {
				// Nobody can know beforehand of a session that is ended before its time is over. It ends here as it does in life.
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
			time.Sleep(lingers) // for what goes on in the background
			before := att.rounds()
			time.Sleep(5 * time.Second)
			if got := att.rounds() - before; got < members*2 {
				t.Errorf("when all was well again, %d rounds in 5 s", got)
			}
			cancel()
			wg.Wait()
			time.Sleep(time.Second)
			for path := range w.Tree("/") {
				if strings.HasPrefix(path, "/both/") && path != "/both/ready" {
					t.Errorf("%s is left", path)
				}
			}
			if err := att.err(); err != nil {
				t.Error(err)
			}
		}
	})
}
