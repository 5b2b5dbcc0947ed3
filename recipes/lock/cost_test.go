package lock_test

import (
	"context"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes/lock"
)

// TestCost checks the exact requests of each step, and says for how many answers Curator 5.9.1 and
// kazoo 2.11.0 wait, without their requests that create parents. A get+watch that nobody waits for
// is the watch of the holder's own znode, 20 ms after the lock was acquired; a round trip takes
// longer here. Sources: LockInternals.attemptLock and internalLockLoop, InterProcessReadWriteLock,
// InterProcessSemaphoreV2.internalAcquire1Lease; kazoo/recipe/lock.py.
func TestCost(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c, h := w.Hooked()
		other := w.Client()
		cost := func(what string, trips int, ops string, f func()) {
			t.Helper()
			if got := h.Cost(f); got.RoundTrips != trips || got.Ops() != ops {
				t.Errorf("%s: %d round trips, %s; want %d, %s", what, got.RoundTrips, got.Ops(), trips, ops)
			}
		}
		m, theirs := lock.NewMutex(c, "/lock", nil), lock.NewMutex(other, "/lock", nil)
		rw, theirRW := lock.NewRWMutex(c, "/rw", nil), lock.NewRWMutex(other, "/rw", nil)
		s := lock.NewSemaphore(c, "/sem", 3, nil)
		for _, l := range []lock.Locker{theirs, theirRW} { // creates the parents
			check(t, must[*lock.Lock](t)(l.Lock(t.Context())).Release(t.Context()))
		}
		check(t, must[*lock.Lock](t)(lock.NewSemaphore(other, "/sem", 3, nil).Acquire(t.Context())).Release(t.Context()))

		var l, l2 *lock.Lock
		// Curator: create, getChildren. kazoo: create, get_children.
		cost("lock", 2, "create, children, get+watch", func() { l = must[*lock.Lock](t)(m.Lock(t.Context())) })
		// Both: delete.
		cost("unlock", 1, "delete", func() { check(t, l.Release(t.Context())) })
		// A lock that is held only for a moment is not watched.
		cost("lock and unlock", 3, "create, children, delete", func() {
			check(t, m.With(t.Context(), func(context.Context) error { return nil }))
		})
		l = must[*lock.Lock](t)(theirs.Lock(t.Context()))
		// Curator: create, getChildren, getData, delete. kazoo: create, get_children, delete.
		cost("try", 3, "create, children, delete", func() {
			if _, err := m.TryLock(t.Context()); err == nil {
				t.Error("TryLock acquired a held lock")
			}
		})
		// Both: create, getChildren, getData to wait, and getChildren afterwards. The wait takes
		// two round trips here.
		cost("wait", 3+2+1, "create, children, get+watch, children, get+watch", func() {
			time.AfterFunc(500*time.Millisecond, func() { check(t, l.Release(t.Context())) })
			l2 = must[*lock.Lock](t)(m.Lock(t.Context()))
		})
		cost("unlock", 1, "delete", func() { check(t, l2.Release(t.Context())) })

		cost("write and unlock", 3, "create, children, delete", func() {
			check(t, rw.With(t.Context(), func(context.Context) error { return nil }))
		})
		cost("read and unlock", 3, "create, children, delete", func() {
			check(t, rw.RLocker().With(t.Context(), func(context.Context) error { return nil }))
		})
		l = must[*lock.Lock](t)(rw.Lock(t.Context()))
		// Curator: create and getChildren of the reader, delete of the writer. kazoo has no
		// downgrade.
		cost("downgrade", 3, "create, get+watch, children, delete, get+watch", func() { l2 = must[*lock.Lock](t)(rw.Downgrade(t.Context(), l)) })
		check(t, l2.Release(t.Context()))
		l = must[*lock.Lock](t)(theirRW.Lock(t.Context()))
		l2 = must[*lock.Lock](t)(theirRW.Downgrade(t.Context(), l))
		// As for a mutex. After several writers, Curator's reader repeats getChildren and getData
		// for each; kazoo's and ours do not.
		cost("read beside readers", 2, "create, children, get+watch", func() { l = must[*lock.Lock](t)(rw.RLocker().Lock(t.Context())) })
		check(t, l.Release(t.Context()))
		check(t, l2.Release(t.Context()))

		var lease *lock.Lock
		// Curator: create, getChildren, create, getChildren, delete, and in the background
		// removeWatches. kazoo: create, get_children, get_children, create, exists, delete, and
		// exists before.
		cost("acquire", 5, "create, children, create, get+watch, children+watch, delete, get+watch", func() {
			lease = must[*lock.Lock](t)(s.Acquire(t.Context()))
		})
		cost("release", 1, "delete", func() { check(t, lease.Release(t.Context())) })
		var leases []*lock.Lock
		// Curator: 5 for each.
		cost("acquire 3", 5, "create, children, create, create, create, get+watch, children+watch, delete, get+watch, get+watch, get+watch", func() {
			var err error
			if leases, err = s.AcquireN(t.Context(), 3); err != nil {
				t.Fatal(err)
			}
		})
		cost("try for one", 6, "create, children, create, get+watch, children, delete, delete", func() {
			if _, err := s.TryAcquire(t.Context()); err == nil {
				t.Error("TryAcquire got a lease above the maximum")
			}
		})
		check(t, leases[0].Release(t.Context()))
		last := must[*lock.Lock](t)(lock.NewSemaphore(other, "/sem", 3, nil).Acquire(t.Context()))
		// Curator: create, getChildren, create, getChildren; then getChildren, delete. The wait
		// takes two round trips here.
		cost("wait for one", 4+2+2, "create, children, create, get+watch, children+watch, children+watch, delete, get+watch", func() {
			time.AfterFunc(600*time.Millisecond, func() { check(t, last.Release(t.Context())) })
			lease = must[*lock.Lock](t)(s.Acquire(t.Context()))
		})
		for _, l := range append(leases, lease)[1:] {
			check(t, l.Release(t.Context()))
		}

		var all *lock.Lock
		// Curator: the same number.
		cost("multi", 4, "create, children, create, get+watch, children, get+watch", func() {
			all = must[*lock.Lock](t)(lock.NewMulti(m, rw).Lock(t.Context()))
		})
		cost("unlock all", 2, "delete, delete", func() { check(t, all.Release(t.Context())) })
	})
}

// TestK4 releases a lock that ten contenders wait for, again and again, and checks that each
// release makes one of them send a request, once; of readers, those that are served.
func TestK4(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c, h := w.Hooked()
		other := w.Client()
		for _, kind := range []string{"mutex", "readers", "semaphore"} {
			first := must[*lock.Lock](t)(lock.NewRWMutex(other, "/"+kind, nil).Lock(t.Context()))
			var lease *lock.Lock
			if kind == "semaphore" {
				lease = must[*lock.Lock](t)(lock.NewSemaphore(other, "/sem", 1, nil).Acquire(t.Context()))
			}
			ctx, cancel := context.WithCancel(t.Context())
			got := make(chan func(context.Context) error, 10)
			for range 10 {
				go func() { // ends with ctx at the latest; awaited through got
					var (
						l    *lock.Lock
						free *lock.Lock
						err  error
					)
					switch kind {
					case "mutex":
						l, err = lock.NewMutex(c, "/mutex", nil).Lock(ctx)
					case "readers":
						l, err = lock.NewRWMutex(c, "/readers", nil).RLocker().Lock(ctx)
					case "semaphore":
						free, err = lock.NewSemaphore(c, "/sem", 1, nil).Acquire(ctx)
					}
					switch {
					case err != nil:
						t.Error(err)
						got <- nil
					case free != nil:
						got <- free.Release
					default:
						got <- l.Release
					}
				}()
			}
			time.Sleep(time.Second)
			h.Arm(nil, nil)
			check(t, first.Release(t.Context()))
			if lease != nil {
				check(t, lease.Release(t.Context()))
			}
			time.Sleep(time.Second)
			asked := h.Requests()
			children, served := 0, len(got)
			for _, r := range asked {
				if r.Op == "children" {
					children++
				}
			}
			// The next contender gets its turn and looks twice. Readers that come while the first
			// one looks share the next look.
			want := map[string]int{"mutex": 1, "readers": 2, "semaphore": 1 + 2}[kind]
			if children > want || kind != "readers" && served != 1 || kind == "readers" && served != 10 {
				t.Errorf("%s: %d served, children %d times, want at most %d: %v", kind, served, children, want, asked)
			}
			for range 10 {
				if letGo := <-got; letGo != nil {
					check(t, letGo(t.Context()))
				}
			}
			cancel()
		}
	})
}
