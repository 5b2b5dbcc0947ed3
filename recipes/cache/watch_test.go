package cache_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/cache"
)

var background = context.Background() // for helpers that end with their test

func set(c *recipes.Client, path string) error {
	_, err := c.Set(background, path, []byte("set"), -1)
	return err
}

func create(c *recipes.Client, path string) error {
	_, err := c.Create(background, path, nil, recipes.CreateOptions{})
	return err
}

func TestWatchData(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c := w.Client()
		var got []string
		ended := make(chan error)
		go func() {
			ended <- cache.WatchData(t.Context(), c, "/a", func(z *cache.Znode) bool {
				word := "none"
				if z != nil {
					word = string(z.Data)
				}
				got = append(got, word)
				return word != "end"
			})
		}()
		for _, data := range []string{"1", "2"} {
			time.Sleep(time.Second)
			w.Load(map[string]string{"/a": data})
		}
		time.Sleep(time.Second)
		must(t, c.Delete(t.Context(), "/a", -1))
		time.Sleep(time.Second)
		w.Unplug(c)
		w.Load(map[string]string{"/a": "end"})
		time.Sleep(2 * recipetest.Timeout)
		w.Plug(c)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if want := []string{"none", "1", "2", "none", "end"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

func TestWatchChildren(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c := w.Client()
		ctx, cancel := context.WithCancel(t.Context())
		var got [][]string
		ended := make(chan error)
		go func() {
			ended <- cache.WatchChildren(ctx, c, "/a", func(names []string) bool { got = append(got, names); return true })
		}()
		for _, path := range []string{"/a", "/a/y", "/a/x", "/a/x/deep"} {
			time.Sleep(time.Second)
			must(t, create(c, path))
		}
		w.CloseConnections()
		time.Sleep(time.Second)
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		want := [][]string{nil, {}, {"y"}, {"x", "y"}}
		if !slices.EqualFunc(got, want, slices.Equal) || got[0] != nil || got[1] == nil {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

func TestPatientChildren(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c := w.Client()
		if _, _, err := cache.PatientChildren(t.Context(), c, "/a", time.Second); !errors.Is(err, proto.ErrNoNode) {
			t.Error(err)
		}
		w.Load(map[string]string{"/a": ""})
		begun := time.Now()
		time.AfterFunc(4*time.Second, func() { _ = create(c, "/a/x") })
		time.AfterFunc(8*time.Second, func() { _ = create(c, "/a/y") })
		time.AfterFunc(10*time.Second, w.CloseConnections)
		names, fires, err := cache.PatientChildren(t.Context(), c, "/a", 5*time.Second)
		if took := time.Since(begun).Round(time.Second); err != nil || len(names) != 2 || took != 13*time.Second {
			t.Errorf("%q, %v, after %v", names, err, took)
		}
		synctest.Wait()
		select {
		case <-fires:
			t.Error("it fired")
		default:
		}
		must(t, create(c, "/a/z"))
		<-fires
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := cache.PatientChildren(ctx, c, "/a", time.Hour); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// If the root may not be read, Wait says so. A descendant that may not be read is left out.
func TestRefused(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		owner := w.Client(recipes.Auth("digest", []byte("anna:secret")), recipes.ACL(proto.ACL{Perms: proto.PermAll, ID: proto.ID{Scheme: "auth"}}))
		must(t, create(owner, "/a"))
		c := w.Client()
		children := cache.NewChildren(c, "/a")
		defer children.Close()
		must(t, children.Start(t.Context()))
		if err := children.Wait(t.Context()); !errors.Is(err, proto.ErrNoAuth) {
			t.Error(err)
		}
		if err := cache.WatchChildren(t.Context(), c, "/a", func([]string) bool { return true }); !errors.Is(err, proto.ErrNoAuth) {
			t.Error(err)
		}
		if err := cache.WatchChildren(t.Context(), c, "no path", func([]string) bool { return true }); !errors.Is(err, proto.ErrBadArguments) {
			t.Error(err)
		}
		must(t, owner.Delete(t.Context(), "/a", -1))
		w.Load(map[string]string{"/a": ""})
		must(t, create(owner, "/a/secret"))
		must(t, create(c, "/a/open"))
		time.Sleep(10 * time.Second)
		if all := children.All(); len(all) != 1 || all[0].Path != "/a/open" || !children.Complete() {
			t.Errorf("%+v, %v", all, children.Complete())
		}
	})
}

// TestTree_ReadsAgainIfToldThatItMissed: while a client is away there are more changes than a
// server sends again, so its cache reads everything.
func TestTree_ReadsAgainIfToldThatItMissed(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		w.Load(map[string]string{"/a": "", "/a/b": ""})
		c, other := w.Client(), w.Client()
		tree := cache.NewTree(c, "/a", cache.TreeOptions{})
		defer tree.Close()
		must(t, tree.Start(t.Context()))
		must(t, tree.Wait(t.Context()))
		w.Unplug(c)
		ops := slices.Repeat([]client.Op{client.SetOp("/a/b", []byte("1"), -1)}, 10_001)
		_, err := other.Multi(t.Context(), ops...)
		must(t, err)
		must(t, create(other, "/a/new"))
		w.Plug(c)
		time.Sleep(time.Second)
		expectTree(t, tree, map[string]string{"/a": "", "/a/b": "1", "/a/new": ""})
	})
}
