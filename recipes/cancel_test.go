package recipes_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/recipetest"
	"github.com/gozkd/gozkd/zktest"
)

// TestCancel ends ctx at each request that an operation makes, before it is sent and when it was answered, with and without a lost answer
// before. Then the operation returns at once; and when the server is idle again, either it is done as reported, or nothing is
// left but containers and what was reported as unknown.
func TestCancel(t *testing.T) {
	for _, op := range operations() {
		for _, lose := range []bool{false, true} {
			for _, when := range []string{"before", "after"} {
				name := op.name + map[bool]string{true: ", answer lost"}[lose] + ", " + when
				t.Run(name, func(t *testing.T) {
					for k := 1; ; k++ {
						more := false
						synctest.Test(t, func(t *testing.T) { more = cancelAt(t, op, lose, when, k) })
						if !more {
							break
						}
					}
				})
			}
		}
	}
}

// cancelAt ends ctx at the k-th request. It reports whether there was one.
func cancelAt(t *testing.T, op operation, lose bool, when string, k int) bool {
	s := recipetest.NewWorld(t, 1)
	s.Load(map[string]string{"/dir": "", "/dir/z": "old"})
	c, h := s.Hooked()
	before := s.Tree("/")
	if lose {
		s.DropReply(op.fault)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	at := func(r recipetest.Request) {
		if r.N == k {
			cancel()
			synctest.Wait() // so that who waits for ctx goes first, if it may
		}
	}
	if when == "before" {
		h.Arm(func(r recipetest.Request) error { at(r); return nil }, nil)
	} else {
		h.Arm(nil, at)
	}
	begun := time.Now()
	err := op.do(ctx, c)
	if len(h.Requests()) < k {
		return false
	}
	if ctx.Err() != nil && time.Since(begun) > 2*time.Second {
		t.Errorf("request %d: it took %v", k, time.Since(begun))
	}
	time.Sleep(5 * time.Second) // for what goes on in the background
	s.ClearFaults()
	switch after := s.Tree("/"); {
	case err == nil:
		if op.name != "set any" {
			op.verify(t, s.Service, 1)
		}
	case !errors.Is(err, context.Canceled) && !op.once:
		t.Errorf("request %d: %v", k, err)
	case strings.HasPrefix(op.name, "create protected"):
		if !maps.Equal(before, after) {
			t.Errorf("request %d: %v, and left %q", k, err, after)
		}
	case errors.Is(err, recipes.ErrOutcomeUnknown):
		if !maps.Equal(before, after) && op.name != "set any" { // which may have been done twice
			op.verify(t, s.Service, 1)
		}
	case strings.HasPrefix(op.name, "create"), op.fault == zktest.Set, op.fault == zktest.Delete, op.fault == zktest.Multi:
		// The answer to the write came before ctx ended, and what failed is the read after it; or it was not sent.
		if !maps.Equal(before, after) {
			op.verify(t, s.Service, 1)
		}
	}
	return true
}

// TestCancel_Another: what is undone is what was created, and not what another has made in its place meanwhile.
func TestCancel_Another(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c, h := w.Hooked()
		other := w.Client()
		ctx, cancel := context.WithCancel(t.Context())
		deletes := 0
		h.Arm(func(r recipetest.Request) error {
			switch {
			case r.Op == zktest.Create:
				cancel()
				synctest.Wait() // nobody waits for it any more
			case r.Op == zktest.Delete && deletes == 0:
				deletes++
				w.ExpireSession(c.Session().ID())
				if _, err := other.Create(t.Context(), "/name", nil, recipes.CreateOptions{Mode: recipes.Ephemeral}); err != nil {
					t.Error(err)
				}
				return zk.ErrConnectionClosed
			}
			return nil
		}, nil)
		if _, err := c.Create(ctx, "/name", nil, recipes.CreateOptions{Mode: recipes.Ephemeral}); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		if deletes != 1 {
			t.Errorf("%d deletes", deletes)
		}
		w.AssertOwner("/name", other.Session().ID())
	})
}
