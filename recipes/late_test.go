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

// TestSync_WaitsForLeft: what nobody waits for any more, and is sent when the next session is there, is done when a Sync returns that was asked for
// before it was sent.
func TestSync_WaitsForLeft(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		w.Load(map[string]string{"/n": ""})
		c, h := w.Hooked()
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
			t.Errorf("%q, %v; the test has come too late", data, err)
		}
		if err := c.Sync(t.Context(), "/n"); err != nil {
			t.Error(err)
		}
		w.AssertData("/n", "late")
	})
}

// TestWrap_KnowsNotOfTheNextSession: a wrapped connection has the next session, and its event is still to be read. An ephemeral that is made then
// was asked for in the session before: it is nobody's, and is undone.
func TestWrap_KnowsNotOfTheNextSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := zktest.Start(t)
		c, next := recipetest.OpenUnaware(t, server.Service)
		time.Sleep(100 * time.Millisecond) // the next probe is far
		session := c.Session()
		in, cancel := session.Within(t.Context())
		defer cancel()
		next()
		path, err := c.Create(in, "/n-", nil, recipes.CreateOptions{Mode: recipes.EphemeralSequential, Protected: true})
		if !errors.Is(err, recipes.ErrSessionLost) || !errors.Is(err, recipes.ErrOutcomeUnknown) {
			t.Errorf("%q, %v", path, err)
		}
		time.Sleep(time.Second)
		server.AssertChildren("/", "zookeeper")
	})
}
