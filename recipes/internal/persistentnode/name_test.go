package persistentnode_test

import (
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/persistentnode"
	"github.com/gozkd/gozkd/zktest"
)

// TestK1_Found checks that an existing znode gets the data, unless it is an ephemeral.
func TestK1_Found(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		w.Load(map[string]string{"/n": "old"})
		n := start(t, w.Client(), "/n", "new", recipes.CreateOptions{})
		time.Sleep(time.Second)
		w.AssertData("/n", "new")
		if err := n.SetData(t.Context(), []byte("newer")); err != nil {
			t.Fatal(err)
		}
		w.AssertData("/n", "newer")
	})
}

// TestK1_WatchLost checks that a deletion that fires no watch is noticed after the next reconnect.
func TestK1_WatchLost(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c, other := w.Client(), w.Client()
		start(t, c, "/n", "x", recipes.CreateOptions{Ephemeral: true})
		time.Sleep(time.Second)
		w.FailNext(zktest.Watch, -1)
		w.CloseConnection(c.Session().ID())
		if err := other.Delete(t.Context(), "/n", -1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(recipetest.Timeout / 2)
		w.AssertOwner("/n", c.Session().ID())
	})
}

// TestK2_ClosedWhileCreating closes a Znode before it knows that another session has the name.
// Close must not delete that znode.
func TestK2_ClosedWhileCreating(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		first := w.Client()
		start(t, first, "/n", "1", recipes.CreateOptions{Ephemeral: true})
		created := w.Znode("/n").Stat.Czxid
		second := persistentnode.New(w.Client(), "/n", []byte("2"), recipes.CreateOptions{Ephemeral: true})
		w.Delay(zktest.Create, time.Second)
		keep(second)
		time.Sleep(100 * time.Millisecond)
		if err := second.Close(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		if z := w.Znode("/n"); z == nil || z.Stat.Czxid != created {
			t.Errorf("%+v", z)
		}
	})
}

// TestK2_DeleteOnce checks that a Znode that has waited for the name keeps it, although the answer
// to the previous owner's delete is lost.
func TestK2_DeleteOnce(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		first := start(t, w.Client(), "/n", "1", recipes.CreateOptions{Ephemeral: true})
		c, h := w.Hooked()
		second := persistentnode.New(c, "/n", []byte("2"), recipes.CreateOptions{Ephemeral: true})
		keep(second)
		time.Sleep(time.Second)
		h.Arm(nil, nil)
		f := w.DropReply(zktest.Multi)
		if err := first.Close(t.Context()); err != nil {
			t.Error(err)
		}
		f.Wait()
		time.Sleep(time.Minute)
		creates := 0
		for _, r := range h.Requests() {
			if r.Op == zktest.Create {
				creates++
			}
		}
		if creates != 1 {
			t.Errorf("the znode was created %d times", creates)
		}
		w.AssertOwner("/n", c.Session().ID())
		if err := second.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
