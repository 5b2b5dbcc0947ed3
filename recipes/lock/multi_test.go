package lock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/lock"
)

func TestMulti_K7(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		w.Load(map[string]string{"/x": "0"})
		c, other := w.Client(), w.Client()
		rw := lock.NewRWMutex(c, "/c", nil)
		multi := lock.NewMulti(lock.NewMutex(c, "/a", nil), lock.NewKazooMutex(c, "/b", nil), rw, lock.NewRWMutex(c, "/d", nil).RLocker())
		all := must[*lock.Lock](t)(multi.TryLock(t.Context()))
		var paths []string
		for _, path := range []string{"/a", "/b", "/c", "/d"} {
			line := must[recipes.Contention](t)(lock.Explain(t.Context(), c, path))
			if len(line.Holders) != 1 || line.Holders[0].Zxid > all.Token() {
				t.Fatalf("%s: %+v, token %d", path, line, all.Token())
			}
			paths = append(paths, line.Holders[0].Path)
		}
		if n := len(all.Guard()); n != 4 {
			t.Errorf("%d checks", n)
		}
		check(t, lock.Revoke(t.Context(), other, paths[1]))
		<-all.Revoked()
		if _, err := multi.TryLock(t.Context()); !errors.Is(err, recipes.ErrNotAcquired) {
			t.Error(err)
		}
		set := func(to string) client.Op { return client.SetOp("/x", []byte(to), -1) }
		if results, err := all.Commit(t.Context(), set("1")); err != nil || len(results) != 1 || results[0].Stat.Version != 1 {
			t.Errorf("commit: %+v, %v", results, err)
		}
		// The loss of one lock ends all, even if it is not the first.
		check(t, other.Delete(t.Context(), paths[2], -1))
		if _, err := all.Commit(t.Context(), set("2")); !errors.Is(err, recipes.ErrNotHeld) || all.Context().Err() == nil {
			t.Error(err, all.Context().Err())
		}
		w.AssertData("/x", "1")
		if err := all.Release(t.Context()); !errors.Is(err, recipes.ErrNotHeld) {
			t.Error(err)
		}
		if err := all.Release(t.Context()); !errors.Is(err, recipes.ErrNotHeld) {
			t.Error(err)
		}

		// If one lock cannot be acquired, none is held.
		l := must[*lock.Lock](t)(lock.NewMutex(other, "/b", nil).Lock(t.Context()))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := multi.Lock(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		time.Sleep(time.Second)
		w.AssertChildren("/a")
		w.AssertChildren("/c")
		var wg sync.WaitGroup
		wg.Go(func() {
			check(t, multi.With(t.Context(), func(ctx context.Context) error {
				for _, path := range []string{"/a", "/b", "/c", "/d"} {
					if line := must[recipes.Contention](t)(lock.Explain(ctx, c, path)); len(line.Holders) != 1 || len(line.Waiters) != 0 {
						t.Errorf("%s: %+v", path, line)
					}
				}
				return ctx.Err()
			}))
		})
		// While Lock waits for the second lock it loses the first, and another client takes that
		// before Lock starts again.
		time.Sleep(time.Second)
		line := must[recipes.Contention](t)(lock.Explain(t.Context(), c, "/a"))
		check(t, other.Delete(t.Context(), line.Holders[0].Path, -1))
		a := must[*lock.Lock](t)(lock.NewMutex(other, "/a", nil).Lock(t.Context()))
		time.Sleep(time.Second)
		check(t, l.Release(t.Context()))
		time.Sleep(time.Second)
		check(t, a.Release(t.Context()))
		wg.Wait()
		for _, path := range []string{"/a", "/b", "/c", "/d"} {
			w.AssertChildren(path)
		}
	})
}

func TestMulti_Lost(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c, other := w.Client(), w.Client()
		all := must[*lock.Lock](t)(lock.NewMulti(lock.NewMutex(c, "/a", nil), lock.NewMutex(c, "/b", nil)).Lock(t.Context()))
		w.Unplug(c)
		next := must[*lock.Lock](t)(lock.NewMutex(other, "/b", nil).Lock(t.Context()))
		if err := all.Context().Err(); err == nil || !errors.Is(context.Cause(all.Context()), recipes.ErrSessionLost) {
			t.Error(err, context.Cause(all.Context()))
		}
		if next.Token() <= all.Token() {
			t.Errorf("token %d is not greater than %d", next.Token(), all.Token())
		}
		if err := all.Release(t.Context()); !errors.Is(err, recipes.ErrSessionLost) {
			t.Error(err)
		}
		w.Plug(c)
	})
}

func TestNewMulti_Panics(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c := w.Client()
		a, again := lock.NewMutex(c, "/a", nil), lock.NewRWMutex(c, "/a", nil)
		for want, lockers := range map[string][]lock.Locker{
			"at least one locker": nil, "several Clients": {a, lock.NewMutex(c.Namespace("/n"), "/b", nil)},
			"two lockers of /a": {a, lock.NewMutex(c, "/b", nil), again}, "<nil>": {a},
		} {
			func() {
				defer func() {
					if said := fmt.Sprint(recover()); !strings.Contains(said, want) {
						t.Errorf("NewMulti: %s, want %s", said, want)
					}
				}()
				lock.NewMulti(lockers...)
			}()
		}
	})
}
