package recipes_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/zktest"
)

// TestHeld_Within: it ends with the caller's context and with what is held, and does not wait for a timer to know.
func TestHeld_Within(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zktest.Start(t)
		var asleep time.Duration
		c, err := recipes.Connect(t.Context(), []string{s.ConnectString()}, recipes.Dialer(s.Dialer()), recipes.Asleep(func() time.Duration { return asleep }))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		path, err := c.Create(t.Context(), "/n-", nil, recipes.CreateOptions{Mode: recipes.EphemeralSequential})
		if err != nil {
			t.Fatal(err)
		}
		type key struct{}
		outer, stop := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
		held := c.Hold(c.Session(), path, 1)
		one, cancel := held.Within(outer)
		defer cancel()
		two, cancelTwo := held.Within(t.Context())
		defer cancelTwo()
		if one.Err() != nil || one.Value(key{}) != "value" {
			t.Errorf("%v, %v", one.Err(), one.Value(key{}))
		}
		early := c.Hold(c.Session(), path, 1)
		early.End()
		if early.Context().Err() == nil || held.Context().Err() != nil {
			t.Errorf("%v, %v", early.Context().Err(), held.Context().Err())
		}
		s.AssertExists(path)
		stop()
		if !errors.Is(one.Err(), context.Canceled) || two.Err() != nil {
			t.Errorf("%v, %v", one.Err(), two.Err())
		}
		asleep = time.Hour // no timer has run
		if two.Err() == nil || !errors.Is(context.Cause(two), recipes.ErrSessionLost) {
			t.Errorf("%v, %v", two.Err(), context.Cause(two))
		}
		<-two.Done()
		if c.Hold(c.Session(), path, 1).Context().Err() == nil {
			t.Error("it is held in a session that is over")
		}
	})
}
