package barrier_test

import (
	"sync"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/zktest"
)

// at calls f once, when a client is about to make its next request of this kind.
func at(hooks *recipetest.Hooks, op zktest.Op, f func()) {
	var once sync.Once
	hooks.Arm(func(r recipetest.Request) error {
		if r.Op == op {
			once.Do(f)
		}
		return nil
	}, nil)
}

// TestB2_DiesAtOpening kills a member after it was counted and before the barrier opens.
func TestB2_DiesAtOpening(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		dying := w.Client()
		opener, hooks := w.Hooked()
		first := enter(t.Context(), t, dying, 2)
		first.waits()
		at(hooks, zktest.Multi, func() { w.ExpireSession(dying.Session().ID()) })
		second := enter(t.Context(), t, opener, 2)
		second.waits()
		w.AssertMissing("/both/ready")
		again := enter(t.Context(), t, dying, 2)
		one, two := leave(t.Context(), second.in()), leave(t.Context(), again.in())
		left(t, one)
		left(t, two)
	})
}

// TestB2_LateAtLeaving lets a member enter while the last one is about to delete the ready znode.
// The ready znode must stay for that member and later ones.
func TestB2_LateAtLeaving(t *testing.T) {
	for range 4 { // names are random
		recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
			last, hooks := w.Hooked()
			a, b, c := w.Client(), w.Client(), w.Client()
			first, second := enter(t.Context(), t, last, 2), enter(t.Context(), t, a, 2)
			first.in()
			if err := second.in().Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			var late *entering
			at(hooks, zktest.Multi, func() {
				late = enter(t.Context(), t, b, 2)
				late.in()
			})
			leaving := leave(t.Context(), first.member)
			staysIn(t, leaving)
			later := enter(t.Context(), t, c, 2)
			later.in()
			one, two := leave(t.Context(), late.member), leave(t.Context(), later.member)
			left(t, one)
			left(t, two)
			left(t, leaving)
			w.AssertChildren("/both")
		})
	}
}

// TestB3_Undecided lets a member find the ready znode, and the last member leave before the first
// has written the ready znode again. Neither may wait for the other.
func TestB3_Undecided(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		a, b := w.Client(), w.Client()
		slow, hooks := w.Hooked()
		first, second := enter(t.Context(), t, a, 2), enter(t.Context(), t, b, 2)
		first.in()
		if err := second.in().Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		held := make(chan struct{})
		at(hooks, zktest.Multi, func() { <-held })
		undecided := enter(t.Context(), t, slow, 2)
		time.Sleep(time.Second)
		left(t, leave(t.Context(), first.member))
		w.AssertMissing("/both/ready")
		close(held)
		undecided.waits()
		next := enter(t.Context(), t, a, 2)
		one, two := leave(t.Context(), undecided.in()), leave(t.Context(), next.in())
		left(t, one)
		left(t, two)
		w.AssertChildren("/both")
	})
}
