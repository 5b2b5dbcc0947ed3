package queue_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/queue"
)

// TestQ5_Delay checks that an item is taken at its due time, not earlier and at most a moment
// later, and that an item that was put later and is due earlier comes first.
func TestQ5_Delay(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		p, q := queue.NewDelay(w.Client(), "/q"), queue.NewDelay(w.Client(), "/q")
		begun := time.Now()
		late, early := begun.Add(time.Minute+300*time.Microsecond), begun.Add(20*time.Second)
		if err := p.Put(t.Context(), late, []byte("late")); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Second, func() {
			if err := p.Put(t.Context(), early, []byte("early")); err != nil {
				t.Error(err)
			}
		})
		if _, ok, err := q.TryTake(t.Context()); ok || err != nil {
			t.Error(ok, err)
		}
		for _, want := range []struct {
			data string
			due  time.Time
		}{{"early", early}, {"late", late}} {
			m, err := q.Take(t.Context())
			if err != nil || string(m.Data) != want.data || time.Since(want.due) < 0 || time.Since(want.due) > 50*time.Millisecond {
				t.Errorf("take: %+v, %v, %v after it was due", m, err, time.Since(want.due))
			}
		}
		if err := p.Put(t.Context(), time.UnixMilli(0), nil); !errors.Is(err, recipes.ErrArgument) {
			t.Error(err)
		}
	})
}

func TestQueue_Remove(t *testing.T) {
	for _, opts := range [][]queue.Option{nil, {queue.Locks("/locks")}} {
		recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
			q := queue.New(w.Client(), "/q", opts...)
			for _, id := range []string{"a/b", "c", "a/b", "a/b"} {
				if err := q.PutID(t.Context(), id, []byte(id)); err != nil {
					t.Fatal(err)
				}
			}
			want := 3
			if len(opts) > 0 {
				i, err := q.TakeLocked(t.Context())
				if err != nil || i.ID != "a_b" {
					t.Fatalf("lock: %+v, %v", i, err)
				}
				defer func() {
					if err := i.Done(t.Context()); err != nil {
						t.Error(err)
					}
				}()
				want = 2
			}
			if n, err := q.Remove(t.Context(), "a/b"); n != want || err != nil {
				t.Error(n, err)
			}
			if n, err := q.Remove(t.Context(), "none"); n != 0 || err != nil {
				t.Error(n, err)
			}
			// An empty ID would match the items without an ID, and NewSimple's items have none.
			_, err := q.Remove(t.Context(), "")
			for _, err := range []error{err, q.PutID(t.Context(), "", nil), queue.NewSimple(w.Client(), "/q").PutID(t.Context(), "x", nil)} {
				if !errors.Is(err, recipes.ErrArgument) {
					t.Error(err)
				}
			}
			if m, ok, err := q.TryTake(t.Context()); !ok || err != nil || m.ID != "c" {
				t.Errorf("take: %+v, %v", m, err)
			}
		})
	}
}

// TestMaxItems checks that producers wait for room one after the other.
func TestMaxItems(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		const most, producers = 3, 5
		var wg sync.WaitGroup
		for range producers {
			q := queue.New(w.Client(), "/q", queue.MaxItems(most))
			wg.Go(func() {
				for range 4 {
					if err := q.Put(t.Context(), []byte("x")); err != nil {
						t.Error(err)
					}
				}
			})
		}
		q := queue.New(w.Client(), "/q")
		for range 4 * producers {
			time.Sleep(time.Second)
			if items := len(w.Tree("/q")) - 1; items > most+producers {
				t.Errorf("%d items", items)
			}
			if _, err := q.Take(t.Context()); err != nil {
				t.Error(err)
			}
		}
		wg.Wait()
		full := queue.New(w.Client(), "/q", queue.MaxItems(1))
		if err := full.Put(t.Context(), nil); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := full.Put(ctx, nil); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, recipes.ErrOutcomeUnknown) {
			t.Error(err)
		}
		w.AssertChildren("/q", "queue-0000000020")
	})
}

// TestTake_PassesOver checks that items which cannot be taken do not block the others, cost no
// requests while nothing changes, and are taken once that is possible.
func TestTake_PassesOver(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		owner := w.Connect(t)
		w.Load(map[string]string{"/q": ""})
		if _, err := owner.Create("/q/qn-0000000000", []byte("secret"), 0, zk.DigestACL(zk.PermAll, "anna", "secret")); err != nil {
			t.Fatal(err)
		}
		w.Load(map[string]string{"/q/qn-0000000001": "parent", "/q/qn-0000000001/child": "", "/q/qn-0000000002": "free"})
		c, hooks := w.Hooked()
		q := queue.NewSimple(c, "/q")
		if m, err := q.Take(t.Context()); err != nil || string(m.Data) != "free" {
			t.Fatalf("%q, %v", m.Data, err)
		}
		taken := make(chan queue.Message, 1)
		go func() { // ends with the item
			m, err := q.Take(t.Context())
			if err != nil {
				t.Error(err)
			}
			taken <- m
		}()
		hooks.Arm(nil, nil)
		time.Sleep(time.Minute)
		if n := len(hooks.Requests()); n > 60 {
			t.Errorf("%d requests in a minute without changes", n)
		}
		if err := owner.AddAuth("digest", []byte("anna:secret")); err != nil {
			t.Fatal(err)
		}
		if _, err := owner.SetACL("/q/qn-0000000000", zk.WorldACL(zk.PermAll), -1); err != nil {
			t.Fatal(err)
		}
		if m := <-taken; string(m.Data) != "secret" {
			t.Errorf("%q", m.Data)
		}
	})
}
