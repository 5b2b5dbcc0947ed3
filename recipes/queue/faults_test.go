package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/queue"
)

// empty takes all items that are left, and checks that there was nothing but items.
func empty(t testing.TB, w *recipetest.World, items *recipetest.ItemHistory, q taker) {
	t.Helper()
	for {
		done := items.Take()
		m, ok, err := q.TryTake(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return
		}
		done(string(m.Data), nil)
	}
}

type taker interface {
	TryTake(ctx context.Context) (queue.Message, bool, error)
	Close() error
}

// clean checks that nothing is left of a queue but its directories.
func clean(t testing.TB, w *recipetest.World) {
	t.Helper()
	for path := range w.Tree("/") {
		if !slices.Contains([]string{"/", "/q", "/q-members", "/q-locks"}, path) {
			t.Errorf("%s still exists", path)
		}
	}
}

// sure checks that an error leaves no unknown outcome, unless the fault may cause one.
func sure(t testing.TB, s *recipetest.Step, err error) {
	t.Helper()
	ends := s.Fault == recipetest.EndBefore || s.Fault == recipetest.EndAfter
	switch {
	case err == nil, ends && errors.Is(err, context.Canceled):
	case s.Fault == recipetest.Expire && errors.Is(err, recipes.ErrOutcomeUnknown):
	default:
		t.Errorf("fault %v at request %d: %v", s.Fault, s.K, err)
	}
}

// TestQ1_Put has each kind of fault at each request, and checks that an item is put once or not at
// all, as reported. Nothing is left of a Put that ctx ended.
func TestQ1_Put(t *testing.T) {
	recipetest.Steps(t, 1, recipetest.Faults(), func(t testing.TB, s *recipetest.Step) {
		q := queue.New(s.Client, "/q")
		items := recipetest.NewItemHistory()
		s.Arm()
		var failed []string
		for i := range 3 {
			name := fmt.Sprint(i)
			done := items.Put(name)
			err := q.Put(s.Ctx, []byte(name))
			done(err)
			sure(t, s, err)
			if err != nil && s.Ctx.Err() != nil {
				failed = append(failed, name)
			}
		}
		s.Settle()
		for _, data := range s.Tree("/q") {
			for _, name := range failed {
				if strings.Contains(data, name) {
					t.Errorf("%s exists after its put was abandoned", name)
				}
			}
		}
		if err := q.Close(); err != nil {
			t.Error(err)
		}
		last := queue.New(s.World.Client(), "/q")
		empty(t, s.World, items, last)
		if err := errors.Join(items.ExactlyOnce(), items.InOrder(nil), last.Close()); err != nil {
			t.Error(err)
		}
		clean(t, s.World)
	})
}

// TestQ2_Take has each kind of fault at each request, and checks that an item is taken once, and
// keeps its place when ctx ended.
func TestQ2_Take(t *testing.T) {
	recipetest.Steps(t, 1, recipetest.Faults(), func(t testing.TB, s *recipetest.Step) {
		items := recipetest.NewItemHistory()
		p := queue.NewSimple(s.World.Client(), "/q")
		put := func(name string) {
			done := items.Put(name)
			err := p.Put(t.Context(), []byte(name))
			done(err)
			if err != nil {
				t.Error(err)
			}
		}
		for i := range 3 {
			put(fmt.Sprint(i))
		}
		q := queue.NewSimple(s.Client, "/q")
		s.Arm()
		later := time.AfterFunc(recipetest.Timeout, func() { put("3") })
		defer later.Stop()
		ctx, cancel := context.WithTimeout(s.Ctx, 2*recipetest.Timeout)
		defer cancel()
		for range 4 {
			done := items.Take()
			m, err := q.Take(ctx)
			if s.Ctx.Err() != nil && err != nil {
				err = context.Canceled // Unknown is set, but nothing is lost
			}
			done(string(m.Data), err)
			if !errors.Is(err, context.DeadlineExceeded) {
				sure(t, s, err)
			}
		}
		s.Settle()
		if err := q.Close(); err != nil {
			t.Error(err)
		}
		last := queue.NewSimple(s.World.Client(), "/q")
		empty(t, s.World, items, last)
		if err := errors.Join(items.ExactlyOnce(), items.InOrder(nil), last.Close(), p.Close()); err != nil {
			t.Error(err)
		}
		clean(t, s.World)
	})
}

// TestQ3_Locked has each kind of fault at each request, and checks that a locked item belongs to
// nobody else until it is done or returned, or its holder's session ends, and that it is available
// again afterwards.
func TestQ3_Locked(t *testing.T) {
	for _, end := range []string{"done", "return", "handle"} {
		t.Run(end, func(t *testing.T) {
			recipetest.Steps(t, 1, recipetest.Faults(), func(t testing.TB, s *recipetest.Step) {
				items := recipetest.NewItemHistory()
				holds := recipetest.NewHoldHistory(1)
				put := items.Put("a")
				p := queue.New(s.World.Client(), "/q", queue.Locks("/q-locks"))
				put(p.Put(t.Context(), []byte("a")))
				q := queue.New(s.Client, "/q", queue.Locks("/q-locks"))
				s.Arm()
				finished := false
				var held *queue.Item
				finish := func(ctx context.Context, i *queue.Item) {
					held = i
					h := holds.Begin(i.Context(), i.Token(), 1)
					done := items.Take()
					done(string(i.Data), nil)
					time.Sleep(time.Second)
					h.End()
					if ctx.Err() == nil {
						finished = true
					}
				}
				var err error
				switch end {
				case "handle":
					err = q.Handle(s.Ctx, func(ctx context.Context, i *queue.Item) error {
						finish(ctx, i)
						return nil
					})
				default:
					var i *queue.Item
					if i, err = q.TakeLocked(s.Ctx); err != nil {
						break
					}
					finish(s.Ctx, i)
					if end == "return" {
						err = i.Release(s.Ctx)
						break
					}
					err = i.Done(s.Ctx)
				}
				if !errors.Is(err, recipes.ErrNotHeld) && !(s.Fault == recipetest.EndBefore || s.Fault == recipetest.EndAfter) {
					sure(t, s, err)
				}
				done := err == nil && end != "return"
				if done && !finished {
					t.Error("an item is gone that no Done has finished")
				}
				if end != "return" && err != nil && s.Ctx.Err() != nil {
					if held != nil && end == "done" { // repeat a Done that failed
						err = held.Done(t.Context())
						done, finished = err == nil, true
					}
					if closed := s.Client.Close(); closed != nil {
						t.Error(closed)
					}
				}
				s.Settle()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				last, failed := p.TryTakeLocked(ctx)
				if failed != nil || last != nil && done || last == nil && !done && !errors.Is(err, recipes.ErrOutcomeUnknown) {
					t.Errorf("fault %v at request %d: %v, done: %v; then %+v, %v", s.Fault, s.K, err, done, last, failed)
				}
				if last != nil {
					h := holds.Begin(last.Context(), last.Token(), 1)
					h.End()
					if err := last.Done(t.Context()); err != nil {
						t.Error(err)
					}
				}
				if err := holds.Err(); err != nil {
					t.Error(err)
				}
				if err := items.AtLeastOnce(); err != nil && finished {
					t.Error(err)
				}
			})
		})
	}
}
