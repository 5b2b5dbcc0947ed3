package lock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/lock"
	"github.com/gozkd/gozkd/zktest"
)

// readers is more than any test has.
const readers = 100

// TestRWMutex_K3_InOrder checks that readers share, writers do not, and later contenders do not
// overtake. There is one event per second, with the holders after it.
func TestRWMutex_K3_InOrder(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		var (
			wg    sync.WaitGroup
			mu    sync.Mutex
			begun = time.Now()
			got   []string
			holds = recipetest.NewHoldHistory(readers)
		)
		c := w.Client()
		// Each arrives a second after the previous one and holds the lock for ten.
		for i, kind := range strings.Fields("R R W R R W W R") {
			m := []*lock.RWMutex{lock.NewRWMutex(c, "/rw", nil), lock.NewKazooRWMutex(c, "/rw", nil)}[i%2]
			wg.Go(func() {
				time.Sleep(time.Duration(i) * time.Second)
				how, takes := m.RLocker().Lock, 1
				if kind == "W" {
					how, takes = m.Lock, readers
				}
				l, err := how(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				holds.Begin(l.Context(), l.Token(), takes)
				mu.Lock()
				got = append(got, fmt.Sprintf("%s%d at %v", kind, i, time.Since(begun).Round(time.Second)))
				mu.Unlock()
				time.Sleep(10 * time.Second)
				check(t, l.Release(t.Context()))
			})
		}
		wg.Wait()
		want := "[R0 at 0s R1 at 1s W2 at 11s R3 at 21s R4 at 21s W5 at 31s W6 at 41s R7 at 51s]"
		other := strings.Replace(want, "R3 at 21s R4 at 21s", "R4 at 21s R3 at 21s", 1)
		if s := fmt.Sprint(got); s != want && s != other || holds.Err() != nil {
			t.Errorf("%s, %v", s, holds.Err())
		}
		w.AssertChildren("/rw")
	})
}

func TestRWMutex_Try(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		m := lock.NewRWMutex(w.Client(), "/rw", nil)
		refused := func(_ *lock.Lock, err error) {
			t.Helper()
			if !errors.Is(err, recipes.ErrNotAcquired) {
				t.Error(err)
			}
		}
		r := must[*lock.Lock](t)(m.RLocker().TryLock(t.Context()))
		r2 := must[*lock.Lock](t)(m.RLocker().TryLock(t.Context()))
		refused(m.TryLock(t.Context()))
		check(t, r.Release(t.Context()))
		check(t, r2.Release(t.Context()))
		l := must[*lock.Lock](t)(m.TryLock(t.Context()))
		refused(m.TryLock(t.Context()))
		refused(m.RLocker().TryLock(t.Context()))
		check(t, l.Release(t.Context()))
		check(t, m.RLocker().With(t.Context(), func(ctx context.Context) error {
			return m.RLocker().With(ctx, func(context.Context) error { return nil })
		}))
		check(t, m.With(t.Context(), func(ctx context.Context) error { refused(m.RLocker().TryLock(ctx)); return nil }))
		w.AssertChildren("/rw")
	})
}

// TestRWMutex_K6_Downgrade checks that a waiting writer is served after the read lock into which a
// write lock was turned, and not in between; readers are served at once.
func TestRWMutex_K6_Downgrade(t *testing.T) {
	for _, kind := range []string{"curator", "kazoo"} {
		t.Run(kind, func(t *testing.T) {
			recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
				c, other := w.Client(), w.Client()
				m, theirs := lock.NewRWMutex(c, "/rw", []byte("me")), lock.NewRWMutex(other, "/rw", nil)
				name := "__READ__"
				if kind == "kazoo" {
					m, theirs, name = lock.NewKazooRWMutex(c, "/rw", []byte("me")), lock.NewKazooRWMutex(other, "/rw", nil), "__rlock__"
				}
				// so that sequence numbers are not 0
				first := must[*lock.Lock](t)(m.Lock(t.Context()))
				check(t, first.Release(t.Context()))
				l := must[*lock.Lock](t)(m.Lock(t.Context()))
				holds := recipetest.NewHoldHistory(readers)
				writer := holds.Begin(l.Context(), l.Token(), readers)
				var wg sync.WaitGroup
				come := func(how func(context.Context) (*lock.Lock, error), takes int, want time.Duration) {
					begun := time.Now()
					wg.Go(func() {
						l, err := how(t.Context())
						if err != nil {
							t.Error(err)
							return
						}
						holds.Begin(l.Context(), l.Token(), takes)
						if since := time.Since(begun).Round(time.Second); since != want {
							t.Errorf("the lock was acquired after %v, not %v", since, want)
						}
						time.Sleep(time.Second)
						check(t, l.Release(t.Context()))
					})
					time.Sleep(time.Second)
				}
				come(theirs.RLocker().Lock, 1, 3*time.Second)
				come(theirs.Lock, readers, 12*time.Second)
				come(theirs.RLocker().Lock, 1, 12*time.Second)
				writer.End() // as a writer; it continues as a reader
				r := must[*lock.Lock](t)(m.Downgrade(t.Context(), l))
				holds.Begin(r.Context(), r.Token(), 1)
				if l.Context().Err() == nil || r.Context().Err() != nil {
					t.Error(l.Context().Err(), r.Context().Err())
				}
				if want := "/rw/_c_????????-????-4???-????-????????????-" + name + "0000000001"; !matches(want, r.Path()) {
					t.Errorf("%s, want %s", r.Path(), want)
				}
				w.AssertData(r.Path(), "me")
				time.Sleep(10 * time.Second)
				check(t, r.Release(t.Context()))
				wg.Wait()
				if err := holds.Err(); err != nil {
					t.Error(err)
				}
				w.AssertChildren("/rw")
			})
		})
	}
}

func TestRWMutex_Downgrade_Again(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c := w.Client()
		m := lock.NewRWMutex(c, "/rw", nil)
		l := must[*lock.Lock](t)(m.Lock(t.Context()))
		check(t, l.Again())
		r := must[*lock.Lock](t)(m.Downgrade(t.Context(), l))
		if l.Context().Err() != nil || r.Context().Err() != nil {
			t.Error("the read and the write lock are held together")
		}
		line := must[recipes.Contention](t)(lock.Explain(t.Context(), c, "/rw"))
		if len(line.Holders) != 2 || len(line.Waiters) != 0 {
			t.Errorf("explain: %+v", line)
		}
		again := must[*lock.Lock](t)(m.Downgrade(t.Context(), l))
		if l.Context().Err() == nil {
			t.Error("the lock outlives Unlock")
		}
		if _, err := m.Downgrade(t.Context(), l); !errors.Is(err, recipes.ErrNotHeld) {
			t.Error(err)
		}
		check(t, r.Release(t.Context()))
		if _, err := m.TryLock(t.Context()); !errors.Is(err, recipes.ErrNotAcquired) {
			t.Error(err)
		}
		check(t, again.Release(t.Context()))
		w.AssertChildren("/rw")
		defer func() {
			if recover() == nil {
				t.Error("Downgrade accepted a read lock")
			}
		}()
		_, _ = m.Downgrade(t.Context(), r)
	})
}

// TestRWMutex_K6_Deleted checks that Downgrade fails when somebody has deleted the writer's znode
// and another writer has the lock.
func TestRWMutex_K6_Deleted(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c, other := w.Client(), w.Client()
		m := lock.NewRWMutex(c, "/rw", nil)
		l := must[*lock.Lock](t)(m.Lock(t.Context()))
		check(t, other.Delete(t.Context(), l.Path(), -1))
		next := must[*lock.Lock](t)(lock.NewRWMutex(other, "/rw", nil).TryLock(t.Context()))
		if _, err := m.Downgrade(t.Context(), l); !errors.Is(err, recipes.ErrNotHeld) {
			t.Error(err)
		}
		w.AssertChildren("/rw", next.Path()[len("/rw/"):])
	})
}

// TestHandOver: what takes the place of a lock stays if the lock is deleted just then, or in the
// background; otherwise nothing is left of it.
func TestHandOver(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c, h := w.Hooked()
		other := w.Client()
		rw, sem := lock.NewRWMutex(c, "/rw", nil), lock.NewSemaphore(c, "/sem", 1, nil)
		acquire := func(ctx context.Context) (*lock.Lock, error) { return sem.Acquire(ctx) }
		downgrade := func(ctx context.Context) (*lock.Lock, error) {
			l := must[*lock.Lock](t)(rw.Lock(t.Context()))
			return rw.Downgrade(ctx, l)
		}
		refused := errors.New("refused")
		for what, f := range map[string]func(context.Context) (*lock.Lock, error){"/rw/": downgrade, "/sem/locks/": acquire} {
			for _, how := range []string{"deleted", "in the background", "refused"} {
				ctx, cancel := context.WithCancel(t.Context())
				armed := true
				h.Arm(func(r recipetest.Request) error {
					if r.Op != "delete" || !strings.HasPrefix(r.Path, what) || !armed {
						return nil
					}
					armed = false
					switch how {
					case "deleted":
						return other.Delete(t.Context(), r.Path, -1)
					case "in the background":
						cancel()
						return recipes.ErrNoServer
					}
					return refused
				}, nil)
				l, err := f(ctx)
				cancel()
				if armed || errors.Is(err, refused) != (how == "refused") || (err == nil) != (how != "refused") || (err == nil) != (l != nil) || l != nil && l.Context().Err() != nil {
					t.Errorf("%s %s: %v, %v", what, how, l, err)
				}
				h.Arm(nil, nil)
				if l != nil {
					check(t, l.Release(t.Context()))
				}
				time.Sleep(time.Second)
				for path := range w.Tree("/") {
					if strings.Contains(path, "__READ__") || strings.HasPrefix(path, "/sem/leases/") {
						t.Errorf("%s %s: %s stays", what, how, path)
					}
					if strings.Contains(path, "_c_") { // a lock that was not deleted
						check(t, other.Delete(t.Context(), path, -1))
					}
				}
			}
		}
	})
}

// TestRefusedReads: a directory that may not be read is no lock that is lost, which is acquired
// again and again.
func TestRefusedReads(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c, h := w.Hooked()
		m := lock.NewRWMutex(c, "/rw", nil)
		l := must[*lock.Lock](t)(m.Lock(t.Context()))
		refused := errors.New("refused")
		h.Arm(func(r recipetest.Request) error {
			if r.Op == "children" && (r.Path == "/rw" || r.Path == "/sem/leases") {
				return refused
			}
			return nil
		}, nil)
		if _, err := m.Downgrade(t.Context(), l); !errors.Is(err, refused) || errors.Is(err, recipes.ErrNotHeld) {
			t.Errorf("Downgrade: %v", err)
		}
		for op, want := range map[zktest.Op]error{"create": proto.ErrNoAuth, "children": recipes.ErrNotHeld} {
			h.Arm(func(r recipetest.Request) error {
				switch {
				case r.Op != op:
					return nil
				case op == "children":
					return proto.ErrNoNode
				}
				return want
			}, nil)
			if r, err := m.Downgrade(t.Context(), l); !errors.Is(err, want) || r != nil || l.Context().Err() != nil {
				t.Errorf("Downgrade without %s: %v, %v", op, r, err)
			}
		}
		h.Arm(func(r recipetest.Request) error {
			if r.Op == "children" && (r.Path == "/rw" || r.Path == "/sem/leases") {
				return refused
			}
			return nil
		}, nil)
		if _, err := m.TryLock(t.Context()); !errors.Is(err, refused) {
			t.Errorf("TryLock: %v", err)
		}
		s := lock.NewSemaphore(c, "/sem", 1, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := s.Acquire(ctx); !errors.Is(err, refused) || ctx.Err() != nil {
			t.Errorf("Acquire: %v", err)
		}
		if _, err := s.TryAcquire(ctx); !errors.Is(err, refused) {
			t.Errorf("TryAcquire: %v", err)
		}
		called := false
		if err := s.With(ctx, func(context.Context) error { called = true; return nil }); !errors.Is(err, refused) || called {
			t.Errorf("With: %v, called %v", err, called)
		}
		h.Arm(nil, nil)
		if err := s.With(ctx, nil); !errors.Is(err, recipes.ErrArgument) {
			t.Errorf("With without a function: %v", err)
		}
		check(t, l.Release(t.Context()))
	})
}
