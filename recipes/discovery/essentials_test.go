package discovery_test

import (
	"slices"
	"testing"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/discovery"
)

// TestEssentials runs against any ZooKeeper; see recipetest.Servers. Whichever answer is lost, a
// registered instance is found as last updated, and no longer after Unregister.
func TestEssentials(t *testing.T) {
	ctx, p := recipetest.ConnectPair(t, "gozkd-discovery-")
	a, b, cut, root := p.A, p.B, p.Cut, p.Root
	_, err := b.Create(ctx, root+"/web", nil, recipes.CreateOptions{})
	check(t, err)
	services, d := discovery.New[string](a, root), discovery.New[string](b, root)
	c := d.Cache("web")
	check(t, c.Start(ctx))
	defer c.Close()
	check(t, c.Wait(ctx))
	for k := range 7 {
		cut.Arm(k)
		r, err := services.Register(ctx, instance{Name: "web", ID: "a", Payload: "1"})
		check(t, err)
		check(t, r.Update(ctx, instance{Payload: "2"}))
		check(t, b.Sync(ctx, root))
		all, err := d.Instances(ctx, "web")
		if err != nil || !slices.Equal(texts(all), []string{"a=2"}) {
			t.Fatalf("%d: %v, %v", k, all, err)
		}
		for !slices.Equal(texts(c.Instances()), []string{"a=2"}) {
			check(t, ctx.Err())
		}
		check(t, r.Close())
		check(t, b.Sync(ctx, root))
		if all, err := d.Instances(ctx, "web"); err != nil || len(all) != 0 {
			t.Fatalf("%d: %v, %v", k, all, err)
		}
	}
	cut.Arm(0)
	check(t, b.DeleteGuaranteed(ctx, root+"/web"))
	check(t, b.DeleteGuaranteed(ctx, root))
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
