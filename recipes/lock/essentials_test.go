package lock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/lock"
)

// TestEssentials runs against any ZooKeeper: two clients use every recipe at the same time.
func TestEssentials(t *testing.T) {
	address := recipetest.Servers(t)
	ctx := watchdog.Context(t, time.Minute)
	connect := func() *recipes.Client {
		c, err := recipes.Connect(ctx, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { check(t, c.Close()) })
		return c
	}
	a, b := connect(), connect()
	root, err := a.Create(ctx, "/gozkd-lock-", nil, recipes.CreateOptions{Sequential: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, k := range kinds() {
		holds := recipetest.NewHoldHistory(k.total)
		n := "/" + string(rune('a'+i))
		work := func(c *recipes.Client) {
			for range 6 {
				h, letGo, err := k.get(ctx, c.Namespace(root+n))
				if err != nil {
					t.Errorf("%s: %v", k.name, err)
					return
				}
				holds.Begin(h.Context(), h.Token(), k.takes)
				if err := letGo(ctx); err != nil {
					t.Errorf("%s: %v", k.name, err)
				}
			}
		}
		var wg sync.WaitGroup
		wg.Go(func() { work(a) })
		wg.Go(func() { work(b) })
		wg.Wait()
		if err := holds.Err(); err != nil || holds.Len() != 12 {
			t.Errorf("%s: held %d times, %v", k.name, holds.Len(), err)
		}
		for _, dir := range k.dirs {
			recipetest.AssertEmpty(ctx, t, b, root+n+dir)
		}
	}
	remove(t, b, root)
}

// TestEssentials_Revoke checks, on any ZooKeeper, that a holder is notified.
func TestEssentials_Revoke(t *testing.T) {
	address := recipetest.Servers(t)
	c, err := recipes.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	root, err := c.Create(t.Context(), "/gozkd-lock-", nil, recipes.CreateOptions{Sequential: true})
	if err != nil {
		t.Fatal(err)
	}
	check(t, lock.NewMutex(c, root+"/lock", nil).With(t.Context(), func(ctx context.Context) error {
		line, err := lock.Explain(ctx, c, root+"/lock")
		if err != nil || len(line.Holders) != 1 || len(line.Waiters) != 0 {
			t.Fatalf("explain: %+v, %v", line, err)
		}
		return lock.Revoke(ctx, c, line.Holders[0].Path)
	}))
	l := must[*lock.Lock](t)(lock.NewMutex(c, root+"/lock", nil).Lock(t.Context()))
	check(t, lock.Revoke(t.Context(), c, l.Path()))
	select {
	case <-l.Revoked():
	case <-watchdog.After(t, 10*time.Second):
		t.Error("the holder was not notified")
	}
	check(t, l.Release(t.Context()))
	remove(t, c, root)
}

// remove deletes a znode and its descendants.
func remove(t *testing.T, c *recipes.Client, path string) {
	names, _, err := c.Children(t.Context(), path)
	if errors.Is(err, proto.ErrNoNode) { // a container
		return
	}
	check(t, err)
	for _, name := range names {
		remove(t, c, path+"/"+name)
	}
	check(t, c.DeleteGuaranteed(t.Context(), path))
}
