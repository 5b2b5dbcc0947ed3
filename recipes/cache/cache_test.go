package cache_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/cache"
	"github.com/gozkd/gozkd/zktest"
)

// connect returns a Client that is closed at the end of the test.
func connect(t *testing.T, s *zktest.Service, opts ...recipes.Option) *recipes.Client {
	t.Helper()
	c, err := recipes.Connect(t.Context(), strings.Split(s.ConnectString(), ","), append(opts, recipes.Dialer(s.Dialer()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// recorder records the events of a cache as words: "+a=1", "a=1>2", "-a=2", "complete", "stale".
type recorder struct {
	mu    sync.Mutex
	words []string
}

func (r *recorder) note(e cache.Event) {
	word := e.Type.String()
	switch e.Type {
	case cache.Added:
		word = "+" + e.New.Path + "=" + string(e.New.Data)
	case cache.Changed:
		word = e.New.Path + "=" + string(e.Old.Data) + ">" + string(e.New.Data)
	case cache.Removed:
		word = "-" + e.Old.Path + "=" + string(e.Old.Data)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.words = append(r.words, word)
}

// expect waits until all is quiet and compares the events since the last call.
func (r *recorder) expect(t testing.TB, want string) {
	t.Helper()
	time.Sleep(time.Second) // on the bubble's clock
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if got := strings.Join(r.words, " "); got != want {
		t.Errorf("events\n%s\nwant\n%s", got, want)
	}
	r.words = nil
}

func TestChildren(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zktest.Start(t)
		s.Load(map[string]string{"/a": "", "/a/x": "1", "/a/y": "2", "/a/x/deep": ""})
		c := connect(t, s.Service)
		children := cache.NewChildren(c, "/a")
		defer children.Close()
		var r recorder
		must(t, children.Start(t.Context()))
		if err := children.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		children.Listen(t.Context(), r.note) // only now, because the children are read in any order
		if all := children.All(); len(all) != 2 || all[0].Path != "/a/x" || string(all[1].Data) != "2" {
			t.Errorf("%+v", all)
		}
		r.expect(t, "+/a/x=1 +/a/y=2 complete")

		conn := s.Connect(t)
		if _, err := conn.Set("/a/x", []byte("3"), -1); err != nil {
			t.Fatal(err)
		}
		r.expect(t, "/a/x=1>3")
		s.Load(map[string]string{"/a/z": "0"})
		r.expect(t, "+/a/z=0")
		if err := conn.Delete("/a/y", -1); err != nil {
			t.Fatal(err)
		}
		r.expect(t, "-/a/y=2")
		if children.Get("/a/y") != nil || children.Get("/a/z") == nil || !children.Complete() {
			t.Error("wrong")
		}

		s.Disconnect()
		r.expect(t, "stale complete")
		s.ExpireSession(c.Session().ID())
		s.Load(map[string]string{"/a/new": ""})
		r.expect(t, "stale +/a/new= complete")
		if _, err := conn.Set("/a/new", []byte("n"), -1); err != nil {
			t.Fatal(err)
		}
		r.expect(t, "/a/new=>n")
		must(t, children.Close())
		if err := children.Wait(t.Context()); !errors.Is(err, recipes.ErrClosed) {
			t.Error(err)
		}
	})
}

func TestZnodeCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zktest.Start(t)
		c := connect(t, s.Service)
		node := cache.NewZnode(c, "/a")
		defer node.Close()
		var r recorder
		node.Listen(t.Context(), r.note)
		must(t, node.Start(t.Context()))
		r.expect(t, "complete")
		s.Load(map[string]string{"/a": "1"})
		r.expect(t, "+/a=1")
		conn := s.Connect(t)
		if err := conn.Delete("/a", -1); err != nil {
			t.Fatal(err)
		}
		r.expect(t, "-/a=1")
		if node.Get("/a") != nil {
			t.Error("still there")
		}
		s.Load(map[string]string{"/a": "2"})
		r.expect(t, "+/a=2")
		s.Kill()
		r.expect(t, "stale")
		if z := node.Get("/a"); z == nil || string(z.Data) != "2" || node.Complete() {
			t.Errorf("%+v", z)
		}
		s.Start()
		r.expect(t, "complete")
	})
}

func TestTree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zktest.Start(t)
		s.Load(map[string]string{"/a": "", "/a/b": "1", "/a/b/c": "2", "/a/b/c/d": "3"})
		c := connect(t, s.Service)
		tree := cache.NewTree(c, "/a", cache.TreeOptions{})
		defer tree.Close()
		flat := cache.NewTree(c, "/a", cache.TreeOptions{Depth: 2, Enter: func(path string) bool { return path != "/a/e" }})
		defer flat.Close()
		var r, f recorder
		tree.Listen(t.Context(), r.note)
		must(t, tree.Start(t.Context()))
		must(t, flat.Start(t.Context()))
		flat.Listen(t.Context(), f.note)
		r.expect(t, "+/a= +/a/b=1 +/a/b/c=2 +/a/b/c/d=3 complete")
		f.expect(t, "+/a= +/a/b=1 +/a/b/c=2 complete")
		s.Load(map[string]string{"/a/e": "5", "/a/e/f": "6"})
		r.expect(t, "+/a/e=5 +/a/e/f=6")
		f.expect(t, "+/a/e=5")
		if z := tree.Children("/a"); len(z) != 2 || z[1].Path != "/a/e" {
			t.Errorf("%+v", z)
		}
		conn := s.Connect(t)
		for _, path := range []string{"/a/b/c/d", "/a/b/c", "/a/b", "/a/e/f", "/a/e", "/a"} {
			if err := conn.Delete(path, -1); err != nil {
				t.Fatal(err)
			}
			r.mu.Lock()
			r.words = nil
			r.mu.Unlock()
		}
		time.Sleep(time.Second)
		if all := tree.All(); len(all) != 0 {
			t.Errorf("%+v", all)
		}
		s.Load(map[string]string{"/a": "7", "/a/b": "8"})
		time.Sleep(time.Second)
		if all := tree.All(); len(all) != 2 || string(all[1].Data) != "8" {
			t.Errorf("%+v", all)
		}
	})
}

// TestLife tries all orders of Start, Close and the end of ctx.
func TestLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zktest.Start(t)
		s.Load(map[string]string{"/a": "", "/a/b": ""})
		c := connect(t, s.Service)

		never := cache.NewChildren(c, "/a")
		never.Listen(t.Context(), func(cache.Event) {})
		must(t, never.Close())
		must(t, never.Close())
		if err := never.Start(t.Context()); !errors.Is(err, recipes.ErrClosed) {
			t.Error(err)
		}
		if err := never.Wait(t.Context()); !errors.Is(err, recipes.ErrClosed) {
			t.Error(err)
		}

		ctx, cancel := context.WithCancel(t.Context())
		ends := cache.NewChildren(c, "/a")
		must(t, ends.Start(ctx))
		if err := ends.Wait(ctx); err != nil {
			t.Error(err)
		}
		cancel()
		for range ends.Events(t.Context()) { // until the cache ends
		}
		if err := ends.Wait(t.Context()); !errors.Is(err, context.Canceled) || !errors.Is(err, recipes.ErrClosed) {
			t.Error(err)
		}
		if len(ends.All()) != 1 {
			t.Error("nothing can be read after the end")
		}
		must(t, ends.Close())

		waits := cache.NewZnode(c, "/a")
		if err := waits.Wait(ctx); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		must(t, waits.Start(t.Context()))
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := waits.Wait(t.Context()); !errors.Is(err, recipes.ErrClosed) {
			t.Error(err)
		}
		must(t, waits.Close())
	})
}
