package recipes_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
)

// TestStableStates checks which states a reader gets while the connection comes and goes, and
// afterwards.
func TestStableStates(t *testing.T) {
	for _, kind := range recipetest.Kinds() {
		recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
			c := w.Open(kind)
			stable := c.StableStates(t.Context(), recipes.Times(3, time.Minute))
			expect := func(want ...recipes.ConnState) {
				t.Helper()
				time.Sleep(time.Millisecond)
				var got []recipes.ConnState
				for len(stable) > 0 {
					got = append(got, <-stable)
				}
				if !slices.Equal(got, want) {
					t.Errorf("%s: %v, want %v", kind, got, want)
				}
			}
			flap := func(out time.Duration) {
				t.Helper()
				w.Unplug(c)
				time.Sleep(out)
				w.Plug(c)
				for c.State() != recipes.Reconnected {
					time.Sleep(10 * time.Millisecond)
				}
			}
			expect(recipes.Connected)
			begun := time.Now()
			for range 5 {
				flap(100 * time.Millisecond)
			}
			expect(recipes.Suspended)
			for range 2 {
				flap(2 * recipetest.Timeout)
			}
			expect(recipes.Lost) // once

			time.Sleep(time.Minute - time.Since(begun) + time.Second)
			expect() // the connection was lost in the first pause
			time.Sleep(time.Minute)
			expect(recipes.Reconnected)

			flap(100 * time.Millisecond)
			expect(recipes.Suspended)
			time.Sleep(30 * time.Second)
			expect()
			time.Sleep(30 * time.Second)
			expect(recipes.Reconnected)

			// The policy ends the silence: three pauses of a minute.
			w.Unplug(c)
			time.Sleep(3*time.Minute - time.Second)
			expect(recipes.Suspended, recipes.Lost)
			time.Sleep(2 * time.Second)
			w.Plug(c)
			time.Sleep(5 * time.Second)
			expect(recipes.Reconnected)
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			expect(recipes.Closed)
			if _, open := <-stable; open {
				t.Error("the channel is open after Close")
			}
		})
	}
}

// TestStableStates_NoPause checks that a policy without pauses is not asked all the time while the
// connection is lost.
func TestStableStates_NoPause(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c := w.Client()
		var asked atomic.Int32
		stable := c.StableStates(t.Context(), func(int, time.Duration) (time.Duration, bool) {
			return 0, asked.Add(1) < 1000
		})
		w.Unplug(c)
		time.Sleep(time.Second)
		if n := asked.Load(); n < 2 || n > 101 {
			t.Errorf("the policy was asked %d times in a second", n)
		}
		w.Plug(c)
		time.Sleep(5 * time.Second)
		last := recipes.Connecting
		for len(stable) > 0 {
			last = <-stable
		}
		if last != recipes.Reconnected {
			t.Errorf("the last state is %v", last)
		}
	})
}
