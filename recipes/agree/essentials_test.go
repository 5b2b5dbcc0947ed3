package agree_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/agree"
)

// TestEssentials runs on any ZooKeeper, with a lost answer at each request.
func TestEssentials(t *testing.T) {
	servers := recipetest.Servers(t)
	cut := &recipetest.Cutter{}
	ctx := watchdog.Context(t, time.Minute)
	connect := func() *recipes.Client {
		c, err := recipes.Connect(ctx, servers, recipes.Dialer(cut.Dial))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	c := connect()
	root, err := c.Create(ctx, "/gozkd-agree-", nil, recipes.CreateOptions{Sequential: true})
	if err != nil {
		t.Fatal(err)
	}
	over := errors.New("over")
	for k := 1; k <= 12; k++ {
		cut.Arm(k)
		err = agree.NewPartitioner(c, root+"/p", parts[:2], "anna", 10*time.Millisecond).Run(ctx, func(_ context.Context, got map[string]*recipes.Hold) error {
			if len(got) != 2 {
				t.Errorf("frame %d: %v", k, got)
			}
			return over
		})
		if !errors.Is(err, over) {
			t.Errorf("frame %d: %v", k, err)
		}
		cut.Arm(0)
	}
	for _, path := range []string{"/p/party", "/p/locks/p0", "/p/locks/p1", "/p/locks", "/p", ""} {
		if err := c.DeleteGuaranteed(ctx, root+path); err != nil {
			t.Error(err)
		}
	}
}
