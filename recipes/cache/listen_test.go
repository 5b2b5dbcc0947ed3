package cache_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes/cache"
)

// A slow listener receives the difference, without intermediate states.
func TestC4_Slow(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		w.Load(map[string]string{"/a": "", "/a/x": "0"})
		c := w.Client()
		children := cache.NewChildren(c, "/a")
		defer children.Close()
		must(t, children.Start(t.Context()))
		must(t, children.Wait(t.Context()))
		var r recorder
		going := make(chan struct{})
		children.Listen(t.Context(), func(e cache.Event) {
			<-going
			r.note(e)
		})
		time.Sleep(time.Second) // f is called with the first event
		for i := range 300 {
			w.Load(map[string]string{"/a/x": fmt.Sprint(i), fmt.Sprintf("/a/short-%d", i): ""})
			time.Sleep(10 * time.Millisecond)
			must(t, c.Delete(t.Context(), fmt.Sprintf("/a/short-%d", i), -1))
		}
		for range 3 {
			w.CloseConnections()
			time.Sleep(time.Second)
		}
		close(going)
		r.expect(t, "+/a/x=0 /a/x=0>299 complete")

		// A new listener receives the present state, and one that stops receives no more.
		n := 0
		for e := range children.Events(t.Context()) {
			n++
			if e.Type == cache.Complete {
				break
			}
		}
		if n != 2 {
			t.Errorf("%d events", n)
		}
	})
}

// With each fault at each request, the cache reaches the same state, and leaves nothing behind when
// it is closed.
func TestG5_Steps(t *testing.T) {
	recipetest.Steps(t, 1, recipetest.Faults(), func(t testing.TB, s *recipetest.Step) {
		s.Load(map[string]string{"/a": "", "/a/x": "1", "/a/x/y": "2"})
		tree := cache.NewTree(s.Client, "/a", cache.TreeOptions{})
		s.Arm()
		must(t, tree.Start(s.Ctx))
		err := tree.Wait(s.Ctx)
		time.Sleep(time.Second)
		if ended := s.Ctx.Err() != nil; ended != (err != nil) && !ended {
			t.Errorf("ctx %v, but the error is %v", s.Ctx.Err(), err)
		}
		if err == nil && len(tree.All()) != 3 {
			t.Errorf("%+v", tree.All())
		}
		must(t, tree.Close())
		s.Settle()
	})
}
