package persistentnode_test

import (
	"context"
	"testing"
	"time"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/persistentnode"
	"github.com/gozkd/gozkd/recipes/internal/recipetest"
)

// TestRegress_ClosedInTheNextSession closes a Znode without a connection, and lets its session end
// before there is one. Another session then has the name, and Close must not delete its znode.
func TestRegress_ClosedInTheNextSession(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		o := persistentnode.Options{Mode: recipes.Ephemeral}
		c := w.Client()
		first, second := start(t, c, "/n", "1", o), persistentnode.New(w.Client(), "/n", []byte("2"), o)
		second.Start()
		// the test has checked all that matters
		defer func() { _ = second.Close(context.Background()) }()
		session := c.Session().ID()
		w.Unplug(c)
		time.Sleep(100 * time.Millisecond) // until the connection notices
		closed := make(chan error, 1)
		// Ends when there is a connection again; awaited below.
		go func() { closed <- first.Close(t.Context()) }()
		time.Sleep(100 * time.Millisecond)
		w.ExpireSession(session)
		if _, err := second.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		made := w.Znode("/n").Stat
		w.Plug(c)
		if err := <-closed; err != nil {
			t.Error(err)
		}
		time.Sleep(recipetest.Timeout)
		z := w.Znode("/n")
		if c.Session().ID() == session || z == nil || z.Stat.Czxid != made.Czxid {
			t.Errorf("session %#x, %+v; it was %+v", c.Session().ID(), z, made)
		}
	})
}
