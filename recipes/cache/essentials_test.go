package cache_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/cache"
)

// TestEssentials runs on any ZooKeeper: a cache follows a tree, also when connections are cut.
func TestEssentials(t *testing.T) {
	address := recipetest.Servers(t)
	ctx := watchdog.Context(t, time.Minute)
	cut := &recipetest.Cutter{}
	c, err := recipes.Connect(ctx, address, recipes.Dialer(cut.Dial))
	must(t, err)
	defer c.Close()
	root, err := c.Create(ctx, "/gozkd-cache-", nil, recipes.CreateOptions{Sequential: true})
	must(t, err)
	other, err := recipes.Connect(ctx, address)
	must(t, err)
	defer other.Close()
	n := other.Namespace(root)

	tree := cache.NewTree(c.Namespace(root), "/", cache.TreeOptions{})
	must(t, tree.Start(ctx))
	defer tree.Close()
	want := map[string]string{"/": ""}
	for i := range 20 {
		for _, path := range []string{"/d", fmt.Sprintf("/d/%d", i), "/e"} {
			data := fmt.Sprint(i)
			_, err := n.Create(ctx, path, []byte(data), recipes.CreateOptions{})
			if err != nil {
				_, err = n.Set(ctx, path, []byte(data), -1)
			}
			must(t, err)
			want[path] = data
		}
		if i%3 == 0 {
			must(t, n.Delete(ctx, "/e", -1))
			delete(want, "/e")
		}
		cut.Arm(i % 5)
	}
	cut.Arm(0)
	var last map[string]string
	for e := range tree.Events(ctx) {
		if e.Type == cache.Stale || !tree.Complete() {
			continue
		}
		last = make(map[string]string)
		for _, z := range tree.All() {
			last[z.Path] = string(z.Data)
		}
		if maps.Equal(last, want) {
			break
		}
	}
	if !maps.Equal(last, want) {
		t.Errorf("%q\nwant %q", last, want)
	}
	for path := range want {
		if path != "/" && path != "/d" {
			must(t, n.Delete(ctx, path, -1))
		}
	}
	for _, path := range []string{root + "/d", root} {
		must(t, other.Delete(ctx, path, -1))
	}
}
