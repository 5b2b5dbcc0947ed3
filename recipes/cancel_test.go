package recipes_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/zktest"
)

// TestCancel ends ctx at each request of an operation, before the request is sent or after it was
// answered, with and without an earlier lost answer. The operation must return at once. When the
// server is idle again, the operation must have been done as reported, or nothing may be left
// except containers and what was reported as unknown.
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

// cancelAt ends ctx at the k-th request and reports whether there was one.
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
			synctest.Wait() // lets goroutines that wait for ctx run first
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
		t.Errorf("request %d: the operation took %v after the end of ctx", k, time.Since(begun))
	}
	time.Sleep(5 * time.Second) // until background work is done
	s.ClearFaults()
	switch after := s.Tree("/"); {
	case err == nil:
		if op.name != "idempotent set any" {
			op.verify(t, s.Service, 1)
		}
	case !errors.Is(err, context.Canceled) && !op.once:
		t.Errorf("request %d: unexpected error %v", k, err)
	case strings.HasPrefix(op.name, "create protected"):
		if !maps.Equal(before, after) {
			t.Errorf("request %d: error %v, and it left %q", k, err, after)
		}
	case errors.Is(err, recipes.ErrOutcomeUnknown):
		if !maps.Equal(before, after) && op.name != "idempotent set any" { // may have been applied twice
			op.verify(t, s.Service, 1)
		}
	case strings.Contains(op.name, "create"), op.fault == zktest.Set, op.fault == zktest.Delete, op.fault == zktest.Multi:
		// Either the answer to the write came before ctx ended, and the read after it failed; or
		// the write was not sent.
		if !maps.Equal(before, after) {
			op.verify(t, s.Service, 1)
		}
	}
	return true
}

// TestCancel_Another checks that a cancelled create deletes its own znode, and not one that another
// client has created in its place meanwhile.
func TestCancel_Another(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c, h := w.Hooked()
		other := w.Client()
		ctx, cancel := context.WithCancel(t.Context())
		var deletes atomic.Int64
		h.Arm(func(r recipetest.Request) error {
			switch {
			case r.Op == zktest.Create:
				cancel()
				synctest.Wait() // nobody waits for the create any more
			case r.Op == zktest.Delete && deletes.CompareAndSwap(0, 1):
				w.ExpireSession(c.Session().ID())
				if _, err := other.Create(t.Context(), "/name", nil, recipes.CreateOptions{Ephemeral: true}); err != nil {
					t.Error(err)
				}
				return proto.ErrConnectionLoss
			}
			return nil
		}, nil)
		if _, err := c.Create(ctx, "/name", nil, recipes.CreateOptions{Ephemeral: true}); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		if n := deletes.Load(); n != 1 {
			t.Errorf("%d deletes, want 1", n)
		}
		w.AssertOwner("/name", other.Session().ID())
	})
}
