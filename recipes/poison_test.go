package recipes_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/group"
	"github.com/gozkd/gozkd/recipes/lock"
	"github.com/gozkd/gozkd/recipes/shared"
	"github.com/gozkd/gozkd/zktest"
)

// tooLarge are writes of more than a server takes.
func tooLarge(t *testing.T, c *recipes.Client) map[string]error {
	large := make([]byte, 1_200_000)
	held, err := lock.NewMutex(c, "/lock", nil).Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, join := group.New(c, "/group").Join(t.Context(), "a", large)
	_, create := c.Create(t.Context(), "/large", large, recipes.CreateOptions{Protected: true})
	_, set := c.Set(t.Context(), "/small", large, -1)
	half := client.SetOp("/small", large[:1<<19], -1)
	_, multi := c.Multi(t.Context(), half, client.CreateOp("/large", large[:1<<20], client.CreateOptions{}))
	_, commit := held.Commit(t.Context(), client.SetOp("/small", large, -1))
	return map[string]error{
		"create": create, "set": set, "multi": multi, "commit": commit,
		"value":   shared.NewValue(c, "/small").Set(t.Context(), large),
		"join":    join,
		"release": held.Release(t.Context()),
	}
}

// TestTooLarge_Request: a request that is too large is refused at once.
func TestTooLarge_Request(t *testing.T) {
	bubbles(t, func(t *testing.T, kind recipetest.Kind) {
		s := zktest.Start(t)
		s.Load(map[string]string{"/small": "x"})
		c := recipetest.Open(t, kind, s.Service, 10*time.Second)
		states := c.States(t.Context())
		for what, err := range tooLarge(t, c) {
			var large *client.TooLargeError
			if what == "release" {
				if err != nil {
					t.Error(err)
				}
			} else if !errors.As(err, &large) || large.Size < 1<<20 || large.Limit != 1<<20-1 || large.Reply ||
				errors.Is(err, recipes.ErrOutcomeUnknown) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if len(states) > 1 {
			t.Error("the connection was lost")
		}
	})
}

// TestTooLarge_Reply: a reply that is too large breaks no other request.
func TestTooLarge_Reply(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		w.Load(map[string]string{"/large": strings.Repeat("x", 100_000), "/small": "x"})
		c := w.Client(recipes.MaxReply(50_000))
		states := c.States(t.Context())
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if _, _, err := c.Get(t.Context(), "/small"); err != nil {
					t.Error(err)
				}
			})
			wg.Go(func() {
				_, _, err := c.Get(t.Context(), "/large")
				var large *client.TooLargeError
				if !errors.As(err, &large) || !large.Reply || large.Size < 100_000 || large.Limit != 50_000 {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if len(states) > 1 {
			t.Error("the connection was lost")
		}
	})
}

// TestHungUp: a large request that a server answers by closing the connection is recognised after
// the second time, also among other requests, which succeed. So is a small one after the tenth
// time, but not after eight lost answers, as many as Troubles has.
func TestHungUp(t *testing.T) {
	bubbles(t, func(t *testing.T, kind recipetest.Kind) {
		s := zktest.Start(t)
		s.Load(map[string]string{"/small": "x"})
		forever := recipes.Retry(recipes.Forever(50 * time.Millisecond))
		c := recipetest.Open(t, kind, s.Service, 10*time.Second, recipes.MaxRequest(4<<20), forever)
		if _, _, err := c.Get(t.Context(), "/small"); err != nil { // later writes of others are recognised
			t.Fatal(err)
		}
		states := c.States(t.Context())
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				for range 100 {
					if _, _, err := c.Get(t.Context(), "/small"); err != nil {
						t.Error(err)
					}
					time.Sleep(time.Millisecond)
				}
			})
		}
		_, err := c.Set(t.Context(), "/small", make([]byte, 1_200_000), -1)
		if !errors.Is(err, recipes.ErrHungUp) {
			t.Error(err)
		}
		wg.Wait()
		suspended := 0
		for len(states) > 0 {
			if <-states == recipes.Suspended {
				suspended++
			}
		}
		if suspended > 2 {
			t.Errorf("the connection was lost %d times", suspended)
		}
		// The fault closes the client's end. Connect's Client sees that it was not the server.
		if kind == recipetest.Wrap {
			s.DropReply(zktest.Exists, zktest.Times(8))
			if _, err := c.Exists(t.Context(), "/small"); err != nil {
				t.Error(err)
			}
			never := s.DropReply(zktest.Exists, zktest.Times(100))
			if _, err := c.Exists(t.Context(), "/small"); !errors.Is(err, recipes.ErrHungUp) || never.Count() > 11 {
				t.Errorf("%v after %d losses", err, never.Count())
			}
			never.Remove()
		}
		for what, err := range tooLarge(t, c) {
			if hungUp := errors.Is(err, recipes.ErrHungUp); hungUp != (what != "release" && what != "multi" && what != "commit") {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}
