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
	c, other := connect(), connect()
	root, err := c.Create(ctx, "/gozkd-agree-", nil, recipes.CreateOptions{Sequential: true})
	if err != nil {
		t.Fatal(err)
	}
	for k := 1; k <= 12; k++ {
		cut.Arm(k)
		tx := agree.NewTransaction(c, root+"/tx")
		coordinator, err := tx.Begin(ctx, []byte("x"), "a")
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		// Ends with the outcome; awaited below.
		go func() {
			d, err := site(ctx, other, root+"/tx", "a", agree.Commit)
			if err == nil && d != agree.Commit {
				err = errors.New(string(d))
			}
			done <- err
		}()
		if d, err := coordinator.Outcome(ctx); err != nil || d != agree.Commit {
			t.Errorf("frame %d: %s, %v", k, d, err)
		}
		if err := errors.Join(<-done, coordinator.Close(), tx.Forget(ctx)); err != nil {
			t.Errorf("frame %d: %v", k, err)
		}
		cut.Arm(0)
	}
	host, err := agree.NewRendezvous(c, root+"/r").Meet(ctx, []byte("a:1"))
	if err != nil {
		t.Fatal(err)
	}
	guest, err := agree.NewRendezvous(other, root+"/r").Meet(ctx, nil)
	if err != nil || string(guest.Address) != "a:1" {
		t.Fatal(guest, err)
	}
	if err := host.Close(); err != nil {
		t.Error(err)
	}
	<-guest.Context().Done()
	if err := guest.Close(); err != nil {
		t.Error(err)
	}
	over := errors.New("over")
	err = agree.NewPartitioner(c, root+"/p", parts[:2], "anna", 10*time.Millisecond).Run(ctx, func(_ context.Context, got map[string]*recipes.Hold) error {
		if len(got) != 2 {
			t.Error(got)
		}
		return over
	})
	if !errors.Is(err, over) {
		t.Error(err)
	}
	for _, path := range []string{"/r", "/p/party", "/p/locks/p0", "/p/locks/p1", "/p/locks", "/p", ""} {
		if err := c.DeleteGuaranteed(ctx, root+path); err != nil {
			t.Error(err)
		}
	}
}
