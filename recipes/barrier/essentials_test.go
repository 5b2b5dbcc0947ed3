package barrier_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/barrier"
)

// TestEssentials runs against any ZooKeeper: two members go through rounds of a double barrier,
// with a barrier set and removed in each, while the answers to one member's requests are lost one
// after the other.
func TestEssentials(t *testing.T) {
	ctx, p := recipetest.ConnectPair(t, "gozkd-barrier-")
	a, b, cut, root := p.A, p.B, p.Cut, p.Root
	att := newAttendance(2, 10*time.Millisecond)
	var wg sync.WaitGroup
	for _, c := range []*recipes.Client{a, b} {
		n := c.Namespace(root)
		wg.Go(func() {
			for round := range 12 {
				if c == a {
					cut.Arm(1 + round)
				}
				att.once(ctx, barrier.NewDouble(n, "/both", 2, "essential"))
			}
		})
	}
	wg.Wait()
	if err := att.err(); err != nil || att.rounds() != 24 {
		t.Errorf("%d rounds, %v", att.rounds(), err)
	}
	for round := range 6 {
		gate := barrier.New(a.Namespace(root), "/gate")
		cut.Arm(1 + round)
		if err := gate.Set(ctx); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		// ends when the barrier is removed; awaited below
		go func() { done <- barrier.New(b.Namespace(root), "/gate").Wait(ctx) }()
		short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		if err := gate.Wait(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		cancel()
		if err := gate.Remove(ctx); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := gate.Wait(ctx); err != nil {
			t.Error(err)
		}
	}
	cut.Arm(0)
	recipetest.AssertEmpty(ctx, t, b, root+"/both")
	for _, path := range []string{root + "/both", root} {
		if err := b.DeleteGuaranteed(ctx, path); err != nil {
			t.Error(err)
		}
	}
}
