package lock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/lock"
)

// TestClose closes the Client of a holder or a waiter, and checks that nothing is left in the line,
// even if the session lives on with a wrapped connection.
func TestClose(t *testing.T) {
	for _, kind := range recipetest.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
				first, second, third := w.Open(kind), w.Open(kind), w.Client()
				held, err := lock.NewMutex(first, "/lock", nil).Lock(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				waited := make(chan error)
				go func() {
					_, err := lock.NewMutex(second, "/lock", nil).Lock(t.Context())
					waited <- err
				}()
				time.Sleep(time.Second)
				if err := second.Close(); err != nil {
					t.Error(err)
				}
				if err := <-waited; !errors.Is(err, recipes.ErrClosed) {
					t.Error(err)
				}
				w.AssertChildren("/lock", held.Path()[len("/lock/"):])
				if err := first.Close(); err != nil {
					t.Error(err)
				}
				if held.Context().Err() == nil {
					t.Error("the lock is held although its Client is closed")
				}
				w.AssertChildren("/lock")
				l, err := lock.NewMutex(third, "/lock", nil).TryLock(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if err := l.Release(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
