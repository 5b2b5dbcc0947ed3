package shared_test

import (
	"errors"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/shared"
)

// TestEssentials runs on any ZooKeeper: each increment counts once, with a lost answer at each
// request.
func TestEssentials(t *testing.T) {
	servers := recipetest.Servers(t)
	cut := &recipetest.Cutter{}
	ctx := watchdog.Context(t, time.Minute)
	c, err := recipes.Connect(ctx, servers, recipes.Dialer(cut.Dial))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	root, err := c.Create(ctx, "/gozkd-shared-", nil, recipes.CreateOptions{Sequential: true})
	if err != nil {
		t.Fatal(err)
	}
	n := shared.NewLong(c, root+"/n", shared.PromotedToLock(root+"/lock"))
	if err := n.Set(ctx, 0); err != nil {
		t.Fatal(err)
	}
	for k := 1; k <= 6; k++ {
		cut.Arm(k)
		before, err := n.Get(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, err := n.Add(ctx, 1); err != nil {
				t.Fatal(err)
			}
		}
		after, err := n.Next(ctx, before)
		if err != nil || after.Value != before.Value+3 || after.Version != before.Version+3 {
			t.Errorf("frame %d: %+v, %v", k, after, err)
		}
		cut.Arm(0)
	}
	tenancy, err := shared.NewLease(c, root+"/lease", "anna", time.Minute).Obtain(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := shared.NewLease(c, root+"/lease", "bert", time.Minute).Obtain(ctx); !errors.Is(err, recipes.ErrNotAcquired) {
		t.Error(err)
	}
	if err := errors.Join(tenancy.Release(ctx), n.Close()); err != nil {
		t.Error(err)
	}
	for _, path := range []string{"/n", "/lease/lease_holder", "/lease", ""} {
		if err := c.DeleteGuaranteed(ctx, root+path); err != nil {
			t.Error(err)
		}
	}
}
