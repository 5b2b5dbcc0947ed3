package recipes_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/recipetest"
	"github.com/gozkd/gozkd/zktest"
)

// TestSync_WaitsForAbandoned abandons a request of a wrapped connection that is sent only in the next session, and checks
// that a Sync that was called before that returns after the request is done.
func TestSync_WaitsForAbandoned(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		w.Load(map[string]string{"/n": ""})
		c, h := w.OpenHooked(recipetest.Wrap)
		session := c.Session()
		h.Arm(func(r recipetest.Request) error {
			if r.Op == zktest.Set {
				w.ExpireSession(session.ID())
				time.Sleep(5 * time.Second)
			}
			return nil
		}, nil)
		in, cancel := session.Within(t.Context())
		defer cancel()
		if _, err := c.Set(in, "/n", []byte("late"), -1); !errors.Is(err, recipes.ErrOutcomeUnknown) || !errors.Is(err, recipes.ErrSessionLost) {
			t.Error(err)
		}
		if data, _, err := c.Get(t.Context(), "/n"); err != nil || len(data) > 0 {
			t.Errorf("the znode has %q, %v; or the test came too late", data, err)
		}
		if err := c.Sync(t.Context(), "/n"); err != nil {
			t.Error(err)
		}
		w.AssertData("/n", "late")
	})
}

// TestWrap_CreateInUnknownSession lets a wrapped connection have a new session whose event is
// still unread. An ephemeral that is created then was requested in the previous session, so it must
// be undone.
func TestWrap_CreateInUnknownSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := zktest.Start(t)
		c, next := recipetest.OpenUnaware(t, server.Service)
		time.Sleep(100 * time.Millisecond) // long before the next probe
		session := c.Session()
		in, cancel := session.Within(t.Context())
		defer cancel()
		next()
		path, err := c.Create(in, "/n-", nil, recipes.CreateOptions{Mode: recipes.EphemeralSequential, Protected: true})
		if !errors.Is(err, recipes.ErrSessionLost) || !errors.Is(err, recipes.ErrOutcomeUnknown) {
			t.Errorf("create: %q, %v", path, err)
		}
		time.Sleep(time.Second)
		server.AssertChildren("/", "zookeeper")
	})
}
