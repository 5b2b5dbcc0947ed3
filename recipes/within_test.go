package recipes_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/zktest"
)

// TestHeld_Within checks that the context ends with the caller's context and with the Hold, and
// that it does not wait for a timer.
func TestHeld_Within(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zktest.Start(t)
		var asleep atomic.Int64 // a time.Duration
		c, err := recipes.Connect(t.Context(), []string{s.ConnectString()}, recipes.Dialer(s.Dialer()), recipes.SuspendedFor(func() time.Duration { return time.Duration(asleep.Load()) }))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		path, err := c.Create(t.Context(), "/n-", nil, recipes.CreateOptions{Ephemeral: true, Sequential: true})
		if err != nil {
			t.Fatal(err)
		}
		type key struct{}
		outer, stop := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
		held := c.NewHold(recipes.HoldSpec{Session: c.Session(), Path: path, Token: 1})
		one, cancel := held.Within(outer)
		defer cancel()
		two, cancelTwo := held.Within(t.Context())
		defer cancelTwo()
		if one.Err() != nil || one.Value(key{}) != "value" {
			t.Errorf("context: %v, value %v", one.Err(), one.Value(key{}))
		}
		early := c.NewHold(recipes.HoldSpec{Session: c.Session(), Path: path, Token: 1})
		early.End()
		if early.Context().Err() == nil || held.Context().Err() != nil {
			t.Errorf("Context ended early: %v, of the Hold: %v", early.Context().Err(), held.Context().Err())
		}
		s.AssertExists(path)
		stop()
		if !errors.Is(one.Err(), context.Canceled) || two.Err() != nil {
			t.Errorf("contexts: %v, %v", one.Err(), two.Err())
		}
		asleep.Store(int64(time.Hour)) // no timer has run
		if two.Err() == nil || !errors.Is(context.Cause(two), recipes.ErrSessionLost) {
			t.Errorf("context: %v, cause %v", two.Err(), context.Cause(two))
		}
		<-two.Done()
		if c.NewHold(recipes.HoldSpec{Session: c.Session(), Path: path, Token: 1}).Context().Err() == nil {
			t.Error("the Hold outlives its session")
		}
	})
}

// TestWithin_Create checks that an ephemeral that was requested in one session and created in the
// next is undone. The caller cannot know in which session it was created, and would rely on its
// deletion with the first.
func TestWithin_Create(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		var asleep atomic.Int64 // a time.Duration
		c, h := w.Hooked(recipes.SuspendedFor(func() time.Duration { return time.Duration(asleep.Load()) }))
		for _, o := range []recipes.CreateOptions{{Ephemeral: true}, {Ephemeral: true, Sequential: true, Protected: true}} {
			in, cancel := c.Session().Within(t.Context())
			h.Arm(nil, func(r recipetest.Request) {
				if r.Op == zktest.Create {
					asleep.Add(int64(time.Hour)) // no timer has run
				}
			})
			if path, err := c.Create(in, "/n", nil, o); !errors.Is(err, recipes.ErrSessionLost) {
				t.Errorf("create: %q, %v", path, err)
			}
			h.Arm(nil, nil)
			cancel()
			time.Sleep(time.Minute)
			w.AssertChildren("/", "zookeeper")
		}
	})
}

// ending is a context that has ended when over is set, without notifying anybody.
type ending struct {
	context.Context
	over atomic.Bool
}

func (e *ending) Err() error {
	if e.over.Load() {
		return context.Canceled
	}
	return nil
}

// TestCreate_EndsWithAnswer ends ctx at the moment of the answer to a create. The znode must be
// deleted, because the caller is told that the create failed.
func TestCreate_EndsWithAnswer(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c, h := w.Hooked()
		ctx := &ending{Context: context.Background()}
		h.Arm(nil, func(recipetest.Request) { ctx.over.Store(true) })
		path, err := c.Create(ctx, "/n", nil, recipes.CreateOptions{Ephemeral: true, Protected: true})
		if path != "" || !errors.Is(err, context.Canceled) {
			t.Errorf("create: %q, %v", path, err)
		}
		time.Sleep(time.Second)
		w.AssertChildren("/", "zookeeper")
	})
}
