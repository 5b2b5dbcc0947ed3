package election_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/election"
)

// TestEssentials runs against any ZooKeeper: a latch and selectors with both kinds of names lead in
// turn, while the answers to one client's requests are lost one after the other.
func TestEssentials(t *testing.T) {
	ctx, p := recipetest.ConnectPair(t, "gozkd-election-")
	a, b, cut, root := p.A, p.B, p.Cut, p.Root
	const turns = 6
	holds := recipetest.NewHoldHistory(1)
	turn := func(_ context.Context, held *recipes.Hold) error {
		holds.Begin(held.Context(), held.Token(), 1).End()
		return nil
	}
	latch := election.NewLatch(a.Namespace(root), "/leader", "latch")
	begin(latch)
	var wg sync.WaitGroup
	wg.Go(func() {
		for k := range turns {
			cut.Arm(1 + k)
			held, err := latch.Await(ctx)
			if err != nil {
				t.Error(err)
				return
			}
			if err := errors.Join(turn(ctx, held), held.Release(ctx)); err != nil {
				t.Error(err)
			}
		}
		if err := latch.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, s := range []*election.Selector{
		election.NewSelector(b.Namespace(root), "/leader", "selector"),
		election.NewKazooSelector(a.Namespace(root), "/leader", "kazoo"),
	} {
		wg.Go(func() {
			for range turns {
				if err := s.Lead(ctx, turn); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	cut.Arm(0)
	if err := holds.Err(); err != nil || holds.Len() != 3*turns {
		t.Errorf("%d turns, %v", holds.Len(), err)
	}
	recipetest.AssertEmpty(ctx, t, b, root+"/leader")
	for _, path := range []string{root + "/leader", root} {
		if err := b.DeleteGuaranteed(ctx, path); err != nil {
			t.Error(err)
		}
	}
}
