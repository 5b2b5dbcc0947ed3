package queue_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/queue"
)

// TestEssentials runs against any ZooKeeper; see recipetest.Servers. It loses the answer to each
// frame in turn, and checks that each item is put and taken once, and that a locked item is done
// once.
func TestEssentials(t *testing.T) {
	servers := recipetest.Servers(t)
	cut := &recipetest.Cutter{}
	ctx := watchdog.Context(t, time.Minute)
	c, err := recipes.Connect(ctx, servers, recipes.SessionTimeout(10*time.Second), recipes.Dialer(cut.Dial), recipes.Logger(recipetest.NewLogger(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	root, err := c.Create(ctx, "/gozkd-recipes-queue-", nil, recipes.CreateOptions{Sequential: true})
	if err != nil {
		t.Fatal(err)
	}
	n := c.Namespace(root)
	q := queue.New(n, "/q", queue.Locks("/locks"))
	for k := 1; k <= 5; k++ {
		data := fmt.Sprint(k)
		cut.Arm(k)
		if err := q.Put(ctx, []byte(data), []byte(data+" locked")); err != nil {
			t.Fatal(err)
		}
		m, err := q.Take(ctx)
		if err != nil || string(m.Data) != data {
			t.Fatalf("take: %+v, %v", m, err)
		}
		i, err := q.TakeLocked(ctx)
		if err != nil || string(i.Data) != data+" locked" {
			t.Fatalf("lock: %+v, %v", i, err)
		}
		if _, err := i.Commit(ctx); err != nil {
			t.Error(err)
		}
		if stat, err := n.Exists(ctx, "/locks/"+i.Name); err != nil || stat == nil || int64(stat.EphemeralOwner) != c.Session().ID() {
			t.Errorf("the lock: %+v, %v", stat, err)
		}
		if err := i.Done(ctx); err != nil {
			t.Fatal(err)
		}
		cut.Arm(0)
		if _, ok, err := q.TryTake(ctx); ok || err != nil {
			t.Errorf("an item too many, %v", err)
		}
	}
	if err := q.Close(); err != nil {
		t.Error(err)
	}
	for _, path := range []string{"/q-members", "/q", "/locks", ""} {
		if err := c.DeleteGuaranteed(ctx, root+path); err != nil {
			t.Error(err)
		}
	}
}
