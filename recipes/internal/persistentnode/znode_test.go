package persistentnode_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/persistentnode"
	"github.com/gozkd/gozkd/zktest"
)

func TestMain(m *testing.M) { recipetest.Main(m) }

// start keeps a znode until the test ends, and waits until the znode exists.
func start(t testing.TB, c *recipes.Client, path, data string, o recipes.CreateOptions, takeOver ...bool) *persistentnode.Znode {
	t.Helper()
	n := persistentnode.New(c, path, []byte(data), o)
	if len(takeOver) > 0 {
		n.TakeOver()
	}
	keep(n)
	// the Client is closed afterwards; the test has checked all that matters
	t.Cleanup(func() { _ = n.Close(context.Background()) })
	if _, err := n.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	return n
}

func keep(n *persistentnode.Znode) {
	if err := n.Start(context.Background()); err != nil {
		panic(err)
	}
}

var modes = map[string]recipes.CreateOptions{
	"persistent": {}, "persistent sequential": {Sequential: true}, "ephemeral": {Ephemeral: true}, "ephemeral sequential": {Ephemeral: true, Sequential: true},
	"container": {Container: true}, "ttl": {TTL: time.Minute}, "ttl sequential": {TTL: time.Minute, Sequential: true},
}

// eachMode runs f for each mode, in a world with one member.
func eachMode(t *testing.T, f func(t testing.TB, w *recipetest.World, o recipes.CreateOptions)) {
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
				f(t, w, mode)
			})
		})
	}
}

func TestK1_DeletedByOthers(t *testing.T) {
	eachMode(t, func(t testing.TB, w *recipetest.World, o recipes.CreateOptions) {
		other := w.Client()
		n := start(t, w.Client(), "/a/b/n", "1", o)
		for _, data := range []string{"1", "2"} {
			if err := n.SetData(t.Context(), []byte(data)); err != nil {
				t.Fatal(err)
			}
			path, err := n.Wait(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			w.AssertData(path, data)
			time.Sleep(time.Second)                          // until the child exists
			_ = other.Delete(t.Context(), path+"/touch", -1) // the child exists with a TTL only
			if err := other.Delete(t.Context(), path, -1); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			w.AssertData(path, data)
			if again, err := n.Path(); err != nil || again != path {
				t.Errorf("%q, %v, and it was %q", again, err, path)
			}
		}
	})
}

func TestK1_SessionExpires(t *testing.T) {
	eachMode(t, func(t testing.TB, w *recipetest.World, o recipes.CreateOptions) {
		c := w.Client()
		n := start(t, c, "/n", "x", o)
		path, _ := n.Wait(t.Context())
		before := c.Session()
		w.ExpireSession(before.ID())
		<-before.Context().Done()
		time.Sleep(time.Second) // a znode that is not an ephemeral stayed
		again, err := n.Wait(t.Context())
		if err != nil || again != path {
			t.Fatalf("%q, %v, and it was %q", again, err, path)
		}
		w.AssertData(path, "x")
		if c.Session() == before {
			t.Error("the client has the same session")
		}
	})
}

// TestK1_DataOfOthers checks that data of other clients stay until the znode is created again.
func TestK1_DataOfOthers(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		n := start(t, w.Client(), "/n", "mine", recipes.CreateOptions{Ephemeral: true})
		other := w.Client()
		if _, err := other.Set(t.Context(), "/n", []byte("yours"), -1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		w.AssertData("/n", "yours")
		// whatever the version is
		if err := n.SetData(t.Context(), []byte("mine again")); err != nil {
			t.Fatal(err)
		}
		w.AssertData("/n", "mine again")
	})
}

// TestK2_Waits checks that the second Znode waits, and has the znode when the first is gone.
func TestK2_Waits(t *testing.T) {
	for _, mode := range []recipes.CreateOptions{{Ephemeral: true}, {}} {
		recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
			first := w.Client()
			n := start(t, first, "/n", "1", recipes.CreateOptions{Ephemeral: true})
			c := w.Client()
			second := persistentnode.New(c, "/n", []byte("2"), mode)
			keep(second)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if _, err := second.Wait(ctx); !errors.Is(err, recipes.ErrTaken) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v, want taken", err)
			}
			if _, err := second.Path(); !errors.Is(err, recipes.ErrTaken) {
				t.Errorf("%v, want taken", err)
			}
			w.AssertData("/n", "1")
			w.AssertOwner("/n", first.Session().ID())
			if err := n.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if _, err := second.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.AssertData("/n", "2")
			if err := second.Close(t.Context()); err != nil {
				t.Error(err)
			}
			w.AssertMissing("/n")
		})
	}
}

// TestK2_CloseLeavesOthers checks that closing a waiting Znode deletes nothing.
func TestK2_CloseLeavesOthers(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		start(t, w.Client(), "/n", "1", recipes.CreateOptions{Ephemeral: true})
		second := persistentnode.New(w.Client(), "/n", []byte("2"), recipes.CreateOptions{Ephemeral: true})
		keep(second)
		time.Sleep(time.Second)
		if err := second.Close(t.Context()); err != nil {
			t.Error(err)
		}
		w.AssertData("/n", "1")
	})
}

// TestK4 checks that of two Znodes with TakeOver the second has the znode, and that neither
// disturbs the other again, whatever happens to their sessions.
func TestK4(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		a, b := w.Client(), w.Client()
		o := recipes.CreateOptions{Ephemeral: true}
		first := start(t, a, "/n", "1", o, true)
		second := start(t, b, "/n", "2", o, true)
		owned := w.Znode("/n").Stat.Czxid
		time.Sleep(time.Minute)
		w.AssertData("/n", "2")
		if z := w.Znode("/n").Stat.Czxid; z != owned {
			t.Error("the two owners replace each other")
		}
		if _, err := first.Path(); !errors.Is(err, recipes.ErrTaken) {
			t.Errorf("%v, want taken", err)
		}
		w.ExpireSession(b.Session().ID()) // then the waiting one is the first
		time.Sleep(time.Minute)
		w.AssertData("/n", "1")
		w.AssertOwner("/n", a.Session().ID())
		if err := first.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := second.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		w.AssertOwner("/n", b.Session().ID())
	})
}

func TestRefused(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c := w.Client()
		n := persistentnode.New(c, "/n", nil, recipes.CreateOptions{Ephemeral: true, ACL: []proto.ACL{{Perms: proto.PermAll, ID: proto.ID{Scheme: "none", ID: "x"}}}})
		if _, err := n.Path(); err != nil {
			t.Error(err)
		}
		keep(n)
		if _, err := n.Wait(t.Context()); !errors.Is(err, proto.ErrInvalidACL) {
			t.Errorf("%v", err)
		}
		if err := n.SetData(t.Context(), []byte("x")); !errors.Is(err, proto.ErrInvalidACL) {
			t.Errorf("%v", err)
		}
		if err := n.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := n.Wait(t.Context()); !errors.Is(err, recipes.ErrClosed) {
			t.Errorf("%v", err)
		}
		if err := n.SetData(t.Context(), nil); !errors.Is(err, recipes.ErrClosed) {
			t.Errorf("%v", err)
		}
		if err := n.Close(t.Context()); err != nil { // a second time
			t.Error(err)
		}
	})
}

func TestClientCloses(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c := w.Client()
		n := start(t, c, "/n", "x", recipes.CreateOptions{Ephemeral: true})
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if _, err := n.Wait(t.Context()); !errors.Is(err, recipes.ErrClosed) {
			t.Errorf("%v", err)
		}
		if err := n.Close(t.Context()); err != nil { // nothing is left to do
			t.Errorf("%v", err)
		}
		w.AssertMissing("/n")
	})
}

// TestTTL checks that the znode lives as long as its child is touched, that readers with watches do
// not notice, and that it is gone two TTLs after its owner died, even if the child was never
// created.
func TestTTL(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c := w.Client()
		o := recipes.CreateOptions{TTL: time.Minute}
		n := start(t, c, "/a/n", "x", o)
		other := w.Client()
		stat, fires, err := other.ExistsW(t.Context(), "/a/n")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(15 * time.Minute)
		if len(fires) > 0 {
			t.Error("the watch fired")
		}
		if z := w.Znode("/a/n"); z == nil || int64(z.Stat.Czxid) != int64(stat.Czxid) {
			t.Fatalf("%+v", z)
		}
		w.AssertChildren("/a/n", "touch")
		if err := n.Close(t.Context()); err != nil {
			t.Error(err)
		}
		w.AssertExists("/a/n") // several may keep it
		time.Sleep(4 * time.Minute)
		w.AssertMissing("/a/n")

		w.FailNext(zktest.Create, -4, zktest.OnPath("/a/m/touch"), zktest.Times(-1))
		m := start(t, c, "/a/m", "x", o)
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(4 * time.Minute)
		w.AssertMissing("/a/m")
	})
}
