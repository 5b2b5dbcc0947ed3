package lock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/lock"
)

// must returns l, and fails the test if err is not nil.
func must[T any](t testing.TB) func(l T, err error) T {
	return func(l T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

func TestMutex_Layout(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c := w.Client().Namespace("/app")
		l := must[*lock.Lock](t)(lock.NewMutex(c, "/locks/a", []byte("anna")).Lock(t.Context()))
		k := must[*lock.Lock](t)(lock.NewKazooMutex(c, "/locks/b", []byte("berta")).Lock(t.Context()))
		for l, want := range map[*lock.Lock]string{l: "/locks/a/_c_????????-????-4???-????-????????????-lock-0000000000", k: "/locks/b/_c_????????-????-4???-????-????????????-__lock__0000000000"} {
			if !matches(want, l.Path()) {
				t.Errorf("%s, want %s", l.Path(), want)
			}
			w.AssertOwner("/app"+l.Path(), c.Session().ID())
		}
		w.AssertData("/app"+k.Path(), "berta")
		check(t, l.Release(t.Context()))
		check(t, k.Release(t.Context()))
		w.AssertChildren("/app/locks/a")
		w.AssertChildren("/app/locks/b")
	})
}

// matches is like path.Match, except that ? matches a hexadecimal digit.
func matches(pattern, s string) bool {
	if len(pattern) != len(s) {
		return false
	}
	for i := range s {
		hex := s[i] >= '0' && s[i] <= '9' || s[i] >= 'a' && s[i] <= 'f'
		if pattern[i] != s[i] && (pattern[i] != '?' || !hex) {
			return false
		}
	}
	return true
}

// TestMutex_K3_InOrder checks that contenders are served in the order of arrival.
func TestMutex_K3_InOrder(t *testing.T) {
	recipetest.Run(t, 3, func(t testing.TB, w *recipetest.World) {
		holds := recipetest.NewHoldHistory(1)
		var (
			wg    sync.WaitGroup
			mu    sync.Mutex
			order []int
		)
		for i := range 8 {
			m := lock.NewMutex(w.Client(), "/lock", nil)
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 100 * time.Millisecond)
				l, err := m.Lock(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				holds.Begin(l.Context(), l.Token(), 1)
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				time.Sleep(time.Second)
				check(t, l.Release(t.Context()))
			})
		}
		wg.Wait()
		if got := fmt.Sprint(order); got != "[0 1 2 3 4 5 6 7]" || holds.Err() != nil {
			t.Error(got, holds.Err())
		}
	})
}

func TestMutex_TryLock(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		m, other := lock.NewMutex(w.Client(), "/lock", nil), lock.NewKazooMutex(w.Client(), "/lock", nil)
		l := must[*lock.Lock](t)(m.TryLock(t.Context()))
		for _, m := range []*lock.Mutex{m, other} {
			if _, err := m.TryLock(t.Context()); !errors.Is(err, recipes.ErrNotAcquired) {
				t.Error(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			begun := time.Now()
			if _, err := m.Lock(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != 5*time.Second {
				t.Errorf("Lock returned after %v: %v", time.Since(begun), err)
			}
			cancel()
		}
		time.Sleep(time.Second)
		if n := len(w.Tree("/lock")); n != 2 {
			t.Errorf("%d znodes are left", n)
		}
		check(t, l.Release(t.Context()))
		l = must[*lock.Lock](t)(other.TryLock(t.Context()))
		check(t, l.Release(t.Context()))
	})
}

func TestLock_Again(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		l := must[*lock.Lock](t)(lock.NewMutex(w.Client(), "/lock", nil).Lock(t.Context()))
		check(t, l.Again())
		check(t, l.Again())
		check(t, l.Release(t.Context()))
		check(t, l.Release(t.Context()))
		if l.Context().Err() != nil {
			t.Error("the lock ended before the last Unlock")
		}
		check(t, l.Release(t.Context()))
		if l.Context().Err() == nil {
			t.Error("the lock outlives the last Unlock")
		}
		w.AssertMissing(l.Path())
		if err := l.Release(t.Context()); !errors.Is(err, recipes.ErrNotHeld) {
			t.Error(err)
		}
		if err := l.Again(); !errors.Is(err, recipes.ErrNotHeld) {
			t.Error(err)
		}
	})
}

func TestLock_Commit(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		w.Load(map[string]string{"/balance": "0"})
		c, other := w.Client(), w.Client()
		l := must[*lock.Lock](t)(lock.NewMutex(c, "/lock", nil).Lock(t.Context()))
		set := func(to string) client.Op { return client.SetOp("/balance", []byte(to), -1) }
		if _, err := l.Commit(t.Context(), set("1")); err != nil {
			t.Error(err)
		}
		if _, err := other.Multi(t.Context(), l.Guard(set("2"))...); err != nil {
			t.Error(err)
		}
		w.AssertData("/balance", "2")
		check(t, other.Delete(t.Context(), l.Path(), -1))
		if _, err := other.Multi(t.Context(), l.Guard(set("3"))...); !errors.Is(err, proto.ErrNoNode) {
			t.Error(err)
		}
		if _, err := l.Commit(t.Context(), set("4")); !errors.Is(err, recipes.ErrNotHeld) {
			t.Error(err)
		}
		w.AssertData("/balance", "2")
		if l.Context().Err() == nil || !errors.Is(context.Cause(l.Context()), recipes.ErrNotHeld) {
			t.Error(context.Cause(l.Context()))
		}
		if err := l.Release(t.Context()); !errors.Is(err, recipes.ErrNotHeld) {
			t.Error(err)
		}
	})
}

// TestLock_Lost checks that a holder knows of the loss of its session before another client has the
// lock, and that Unlock reports the loss without waiting for a connection.
func TestLock_Lost(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c, other := w.Client(), w.Client()
		l := must[*lock.Lock](t)(lock.NewMutex(c, "/lock", nil).Lock(t.Context()))
		w.Unplug(c)
		next := must[*lock.Lock](t)(lock.NewMutex(other, "/lock", nil).Lock(t.Context()))
		if l.Context().Err() == nil || next.Token() <= l.Token() {
			t.Errorf("Context %v; token %d is not greater than %d", l.Context().Err(), next.Token(), l.Token())
		}
		if err := l.Again(); !errors.Is(err, recipes.ErrNotHeld) {
			t.Errorf("a lock that is lost is acquired once more: %v", err)
		}
		begun := time.Now()
		if err := l.Release(t.Context()); !errors.Is(err, recipes.ErrSessionLost) || time.Since(begun) > 0 {
			t.Errorf("Unlock returned after %v: %v", time.Since(begun), err)
		}
		w.Plug(c)
		check(t, next.Release(t.Context()))
		l = must[*lock.Lock](t)(lock.NewMutex(c, "/lock", nil).Lock(t.Context()))
		check(t, l.Release(t.Context()))
		w.AssertChildren("/lock")
	})
}

type key struct{}

func TestMutex_With(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c, other := w.Client(), w.Client()
		m := lock.NewMutex(c, "/lock", nil)
		ctx := context.WithValue(t.Context(), key{}, "value")
		wrong := errors.New("wrong")
		err := m.With(ctx, func(ctx context.Context) error {
			if _, err := m.TryLock(ctx); !errors.Is(err, recipes.ErrNotAcquired) || ctx.Value(key{}) != "value" || ctx.Err() != nil {
				t.Error(err, ctx.Value(key{}), ctx.Err())
			}
			return wrong
		})
		if err != wrong { //nolint:errorlint // the same error, not wrapped
			t.Error(err)
		}
		w.AssertChildren("/lock")

		// When the lock is lost, ctx and contexts derived from it end, and the error reports the
		// loss even if f does not.
		err = m.With(ctx, func(ctx context.Context) error {
			derived, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			line := must[recipes.Contention](t)(lock.Explain(t.Context(), other, "/lock"))
			time.Sleep(time.Second) // until the lock is watched
			check(t, other.Delete(t.Context(), line.Holders[0].Path, -1))
			<-derived.Done()
			if !errors.Is(context.Cause(derived), recipes.ErrNotHeld) || ctx.Err() == nil {
				t.Error(context.Cause(derived), ctx.Err())
			}
			return nil
		})
		if !errors.Is(err, recipes.ErrNotHeld) {
			t.Error(err)
		}

		// The caller's ctx ends f's ctx too, and the lock is released nevertheless.
		ctx, cancel := context.WithCancel(ctx)
		err = m.With(ctx, func(ctx context.Context) error {
			cancel()
			<-ctx.Done()
			return context.Cause(ctx)
		})
		if err != context.Canceled { //nolint:errorlint // the same error, not wrapped
			t.Error(err)
		}
		time.Sleep(time.Second)
		w.AssertChildren("/lock")

		func() {
			defer func() {
				if recover() != "oops" {
					t.Error("With swallowed the panic")
				}
			}()
			_ = m.With(t.Context(), func(context.Context) error { panic("oops") })
		}()
		w.AssertChildren("/lock")
	})
}

// TestMutex_With_Clock checks that the ctx of With looks at the clock, as that of the Hold does.
func TestMutex_With_Clock(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c := w.Client()
		err := lock.NewMutex(c, "/lock", nil).With(t.Context(), func(ctx context.Context) error {
			w.Unplug(c)
			time.Sleep(2 * recipetest.Timeout)
			return context.Cause(ctx)
		})
		if !errors.Is(err, recipes.ErrSessionLost) {
			t.Error(err)
		}
	})
}

func TestRevoke(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c, other := w.Client(), w.Client()
		l := must[*lock.Lock](t)(lock.NewMutex(c, "/lock", []byte("anna")).Lock(t.Context()))
		asked := func() bool {
			time.Sleep(time.Second)
			select {
			case <-l.Revoked():
				return true
			default:
				return false
			}
		}
		if asked() {
			t.Error("Revoked is closed and nobody has asked")
		}
		if _, err := other.Set(t.Context(), l.Path(), []byte("berta"), -1); err != nil || asked() {
			t.Error("Revoked is closed after a different write", err)
		}
		check(t, lock.Revoke(t.Context(), other, l.Path()))
		if !asked() {
			t.Error("Revoked is closed before Revoke")
		}
		w.AssertData(l.Path(), "__REVOKE__")
		check(t, lock.Revoke(t.Context(), other, l.Path()))
		if !asked() || l.Context().Err() != nil {
			t.Error("Revoke ended the lock")
		}
		check(t, l.Release(t.Context()))
		check(t, lock.Revoke(t.Context(), other, l.Path()))

		// A contender that is asked while it waits learns of that when it has the lock.
		l = must[*lock.Lock](t)(lock.NewMutex(c, "/lock", nil).Lock(t.Context()))
		var wg sync.WaitGroup
		wg.Go(func() {
			l, err := lock.NewMutex(other, "/lock", nil).Lock(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			<-l.Revoked()
			check(t, l.Release(t.Context()))
		})
		time.Sleep(time.Second)
		line := must[recipes.Contention](t)(lock.Explain(t.Context(), c, "/lock"))
		check(t, lock.Revoke(t.Context(), c, line.Waiters[0].Path))
		check(t, l.Release(t.Context()))
		wg.Wait()
		w.AssertChildren("/lock")
	})
}

// TestMutex_Root: the root has children of all kinds, so it cannot be a lock.
func TestMutex_Root(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		m := lock.NewMutex(w.Client(), "/", nil)
		if _, err := m.Lock(t.Context()); !errors.Is(err, proto.ErrBadArguments) {
			t.Error(err)
		}
		if _, err := m.TryLock(t.Context()); !errors.Is(err, proto.ErrBadArguments) {
			t.Error(err)
		}
	})
}
