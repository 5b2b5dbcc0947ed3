package recipes_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/zktest"
)

// bubbles runs f for each kind of Client, in a bubble.
func bubbles(t *testing.T, f func(t *testing.T, kind recipetest.Kind)) {
	for _, kind := range recipetest.Kinds() {
		t.Run(string(kind), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { f(t, kind) }) })
	}
}

func TestOperations(t *testing.T) {
	bubbles(t, func(t *testing.T, kind recipetest.Kind) {
		s := zktest.Start(t)
		c := recipetest.Open(t, kind, s.Service, 10*time.Second)
		ctx := t.Context()
		if path, err := c.Create(ctx, "/a/b/c", []byte("x"), recipes.CreateOptions{Parents: true}); err != nil || path != "/a/b/c" {
			t.Fatalf("create: %q, %v", path, err)
		}
		s.AssertData("/a/b/c", "x")
		if _, err := c.Set(ctx, "/a/b/c", []byte("y"), 0); err != nil {
			t.Error(err)
		}
		if data, stat, err := c.Get(ctx, "/a/b/c"); err != nil || string(data) != "y" || stat.Version != 1 {
			t.Errorf("get: %q, %v", data, err)
		}
		if names, _, err := c.Children(ctx, "/a/b"); err != nil || len(names) != 1 || names[0] != "c" {
			t.Errorf("children: %q, %v", names, err)
		}
		if stat, err := c.Exists(ctx, "/none"); err != nil || stat != nil {
			t.Errorf("exists: %v, %v", stat, err)
		}
		if err := c.Sync(ctx, "/a"); err != nil {
			t.Error(err)
		}
		if err := c.Delete(ctx, "/a/b/c", 0); !errors.Is(err, proto.ErrBadVersion) {
			t.Error(err)
		}
		if err := c.Delete(ctx, "/a/b/c", 1); err != nil {
			t.Error(err)
		}
		if err := c.DeleteGuaranteed(ctx, "/a/b/c"); err != nil {
			t.Error(err)
		}
		s.AssertMissing("/a/b/c")
	})
}
