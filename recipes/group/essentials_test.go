package group_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/group"
)

// TestEssentials runs against any ZooKeeper; see recipetest.Servers. Whichever answer is lost, a
// process that joins is a member once, and none after it has left; a process that joins under the
// same id takes its place, and returns it.
func TestEssentials(t *testing.T) {
	ctx, p := recipetest.ConnectPair(t, "gozkd-group-")
	a, b, cut, root := p.A, p.B, p.Cut, p.Root
	_, err := b.Create(ctx, root+"/g", nil, recipes.CreateOptions{})
	check(t, err)
	mine, yours := group.New(a.Namespace(root), "/g"), group.New(b, root+"/g")
	view := yours.View()
	check(t, view.Start(ctx))
	defer view.Close()
	check(t, view.Wait(ctx))
	for k := range 7 {
		cut.Arm(k)
		m, err := mine.Join(ctx, "x", []byte("1"))
		check(t, err)
		check(t, m.SetData(ctx, []byte("2")))
		members, err := yours.Members(ctx)
		if err != nil || !slices.Equal(texts(members), []string{"x=2"}) || members[0].Session != a.Session().ID() {
			t.Fatalf("%d: %+v, %v", k, members, err)
		}
		other, err := yours.Join(ctx, "x", []byte("3"))
		check(t, err)
		for _, err := m.Path(); !errors.Is(err, recipes.ErrTaken); _, err = m.Path() {
			check(t, ctx.Err())
		}
		check(t, other.Close())
		_, err = m.Wait(ctx)
		check(t, err)
		check(t, m.Close())
		if members, err := yours.Members(ctx); err != nil || len(members) != 0 {
			t.Fatalf("%d: %+v, %v", k, members, err)
		}
	}
	cut.Arm(0)
	check(t, b.DeleteGuaranteed(ctx, root+"/g"))
	check(t, b.DeleteGuaranteed(ctx, root))
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
