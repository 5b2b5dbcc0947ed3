package queue_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/queue"
	"github.com/gozkd/gozkd/zktest"
)

// TestClose_WhileHeld checks that an item stays held when another user of the queue in this process
// closes the queue, that the last Close leaves nothing behind, and that the queue works afterwards.
func TestClose_WhileHeld(t *testing.T) {
	for _, end := range []string{"done", "return"} {
		t.Run(end, func(t *testing.T) {
			recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
				c := w.Client()
				open := func() *queue.Queue { return queue.New(c, "/q", queue.Locks("/q-locks")) }
				q := open()
				if err := q.Put(t.Context(), []byte("a"), []byte("b")); err != nil {
					t.Fatal(err)
				}
				var items []*queue.Item
				for range 2 {
					i, err := q.TakeLocked(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					items = append(items, i)
				}
				if err := open().Close(); err != nil {
					t.Error(err)
				}
				for _, i := range items {
					if _, err := i.Commit(t.Context()); err != nil || i.Context().Err() != nil {
						t.Errorf("item %s: %v, Context %v", i.Data, err, i.Context().Err())
					}
					finish := i.Done
					if end == "return" {
						finish = i.Release
					}
					if err := finish(t.Context()); err != nil {
						t.Errorf("done %s: %v", i.Data, err)
					}
				}
				for want := map[string]int{"done": 0, "return": 2}[end]; want > 0; want-- {
					if m, ok, err := q.TryTake(t.Context()); !ok || err != nil {
						t.Errorf("an item is left: %+v, %v, %v", m, ok, err)
					}
				}
				if m, ok, err := q.TryTake(t.Context()); ok || err != nil {
					t.Errorf("take: %+v, %v", m, err)
				}
				if err := q.Close(); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Second)
				clean(t, w)
			})
		})
	}
}

// TestQ3_RetriesRunOut checks that an item stays held when another take of the same Client stops
// retrying while the session lives, and that the other take leaves no lock behind.
func TestQ3_RetriesRunOut(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c := w.Client(recipes.Retry(recipes.Times(1, 10*time.Millisecond)))
		q := queue.New(c, "/q", queue.Locks("/q-locks"))
		if err := q.Put(t.Context(), []byte("a"), []byte("b")); err != nil {
			t.Fatal(err)
		}
		i, err := q.TakeLocked(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w.DropReply(zktest.Multi, zktest.OfSession(c.Session().ID()))
		syncs := w.DropReply(zktest.Sync, zktest.OfSession(c.Session().ID()), zktest.Times(-1))
		time.AfterFunc(3*time.Second, syncs.Remove)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err := q.TakeLocked(ctx); !errors.Is(err, recipes.ErrOutcomeUnknown) {
			t.Error(err)
		}
		time.Sleep(5 * time.Second)
		other, err := queue.New(w.Client(), "/q", queue.Locks("/q-locks")).TryTakeLocked(t.Context())
		if err != nil || other == nil || string(other.Data) != "b" {
			t.Fatalf("%+v, %v: an item that nobody holds cannot be taken", other, err)
		}
		if i.Context().Err() != nil {
			t.Fatal(i.Context().Err())
		}
		if err := i.Done(t.Context()); err != nil {
			t.Errorf("the item was held all the time: %v", err)
		}
	})
}

// TestHandle_Closed checks the error of Handle when the session is lost while an item is being
// locked and the outcome is unknown.
func TestHandle_Closed(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		p := queue.New(w.Client(), "/q", queue.Locks("/q-locks"))
		if err := p.Put(t.Context(), []byte("a")); err != nil {
			t.Fatal(err)
		}
		c := w.Client()
		q := queue.New(c, "/q", queue.Locks("/q-locks"))
		if i, err := q.TakeLocked(t.Context()); err != nil {
			t.Fatal(err)
		} else if err := i.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.DropReply(zktest.Multi, zktest.OfSession(c.Session().ID()))
		var wg sync.WaitGroup
		wg.Go(func() {
			err := q.Handle(t.Context(), func(context.Context, *queue.Item) error {
				t.Error("there is no item")
				return nil
			})
			if !errors.Is(err, recipes.ErrOutcomeUnknown) && !errors.Is(err, recipes.ErrClosed) {
				t.Error(err)
			}
		})
		w.DropReply(zktest.Sync, zktest.OfSession(c.Session().ID()), zktest.Times(1000))
		time.Sleep(recipetest.Timeout / 2)
		w.Unplug(c)
		time.Sleep(2 * recipetest.Timeout)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
	})
}

// TestQ3_Wrapped checks that an item becomes available again when its holder's session is lost by
// the holder's clock but lives on for the server.
func TestQ3_Wrapped(t *testing.T) {
	for _, kind := range recipetest.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
				c := w.Open(kind)
				q := queue.New(c, "/q", queue.Locks("/q-locks"))
				if err := q.Put(t.Context(), []byte("a")); err != nil {
					t.Fatal(err)
				}
				i, err := q.TakeLocked(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				w.Unplug(c)
				<-i.Context().Done()
				w.Plug(c)
				if err := i.Done(t.Context()); !errors.Is(err, recipes.ErrNotHeld) {
					t.Error(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				again, err := q.TakeLocked(ctx)
				if err != nil {
					t.Fatalf("the item does not become available again: %v", err)
				}
				if err := again.Done(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
