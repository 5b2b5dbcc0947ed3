package recipes_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/zktest"
)

// TestSync_WaitsForAbandoned abandons a request before it is sent, and checks that a Sync that is
// called before that returns after the request is done. A wrapped connection sends the request in
// the next session; a Client of Connect never sends it.
func TestSync_WaitsForAbandoned(t *testing.T) {
	for kind, want := range map[recipetest.Kind]string{recipetest.Connect: "", recipetest.Wrap: "late"} {
		recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
			w.Load(map[string]string{"/n": ""})
			c, h := w.OpenHooked(kind)
			session := c.Session()
			var called, ended time.Time
			h.Arm(func(r recipetest.Request) error {
				if r.Op == zktest.Set {
					w.ExpireSession(session.ID())
					time.Sleep(5 * time.Second)
					ended = time.Now()
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
			called = time.Now()
			if err := c.Sync(t.Context(), "/n"); err != nil || ended.Before(called) {
				t.Errorf("%v; called at %v, the request ended at %v", err, called, ended)
			}
			w.AssertData("/n", want)
		})
	}
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
		path, err := c.Create(in, "/n-", nil, recipes.CreateOptions{Ephemeral: true, Sequential: true, Protected: true})
		if !errors.Is(err, recipes.ErrSessionLost) || !errors.Is(err, recipes.ErrOutcomeUnknown) {
			t.Errorf("create: %q, %v", path, err)
		}
		time.Sleep(time.Second)
		server.AssertChildren("/", "zookeeper")
	})
}
