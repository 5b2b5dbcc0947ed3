package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/lock"
	"github.com/gozkd/gozkd/recipes/shared"
)

// names maps to constructors by naming scheme: Curator's, plain kazoo's, and that of a kazoo that
// knows Curator's names.
type names struct {
	prefix    string
	mutex     func(c *recipes.Client, path string, data []byte) *lock.Mutex
	rw        func(c *recipes.Client, path string, data []byte) *lock.RWMutex
	semaphore func(c *recipes.Client, path string, maximum int, data []byte) *lock.Semaphore
}

// addLocks adds mutex, read/write lock and semaphore.
func addLocks(all map[string]verb) {
	for _, n := range []names{
		{"", lock.NewMutex, lock.NewRWMutex, lock.NewSemaphore},
		{"kazoo-", lock.NewKazooMutex, lock.NewKazooRWMutex, lock.NewKazooSemaphore},
		{"extra-", lock.NewMutex, lock.NewRWMutex, lock.NewSemaphore},
	} {
		addLocker(all, n.prefix+"lock", func(c *recipes.Client, path string) lock.Locker { return n.mutex(c, path, nil) })
		addLocker(all, n.prefix+"wlock", func(c *recipes.Client, path string) lock.Locker { return n.rw(c, path, nil) })
		addLocker(all, n.prefix+"rlock", func(c *recipes.Client, path string) lock.Locker { return n.rw(c, path, nil).RLocker() })
		addAcquire(all, n.prefix+"acquire", func(h *handle, a []string) (wait, try acquire) {
			s := n.semaphore(h.client, a[0], must.Get(strconv.Atoi(a[1])), nil)
			return s.Acquire, s.TryAcquire
		})
	}
	all["wlock-then-rlock"] = func(ctx context.Context, h *handle, a []string) string {
		rw := lock.NewRWMutex(h.client, a[0], nil)
		w := must.Get(rw.Lock(ctx))
		return h.locks(must.Get(rw.Downgrade(ctx, w)))
	}
	all["lock-revocable"] = all["lock"]
	all["revoked"] = func(ctx context.Context, h *handle, a []string) string {
		return yes(within(ctx, a[0], func(ctx context.Context) error {
			select {
			case <-h.object.(*lock.Lock).Revoked():
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}))
	}
	all["revoke"] = func(ctx context.Context, h *handle, a []string) string {
		must.Do(lock.Revoke(ctx, h.client, a[0]))
		return ""
	}
	all["acquire-shared"] = func(ctx context.Context, h *handle, a []string) string {
		return h.locks(must.Get(lock.NewSharedSemaphore(h.client, a[0], shared.NewInt(h.client, a[1]), nil).Acquire(ctx)))
	}
	// The numbers of holders and of waiters.
	all["line"] = func(ctx context.Context, h *handle, a []string) string {
		line := must.Get(lock.Explain(ctx, h.client, a[0]))
		return fmt.Sprintf("%d %d", len(line.Holders), len(line.Waiters))
	}
}

// acquire waits for a lock, or tries once.
type acquire func(ctx context.Context) (*lock.Lock, error)

func addLocker(all map[string]verb, name string, locker func(c *recipes.Client, path string) lock.Locker) {
	addAcquire(all, name, func(h *handle, a []string) (wait, try acquire) {
		l := locker(h.client, a[0])
		return l.Lock, l.TryLock
	})
}

// addAcquire adds a verb that acquires, and "try..." with milliseconds after its arguments, 0 for
// the Try form, which answers yes or no.
func addAcquire(all map[string]verb, name string, of func(h *handle, a []string) (wait, try acquire)) {
	all[name] = func(ctx context.Context, h *handle, a []string) string {
		wait, _ := of(h, a)
		return h.locks(must.Get(wait(ctx)))
	}
	all["try"+name] = func(ctx context.Context, h *handle, a []string) string {
		wait, try := of(h, a)
		ms := a[len(a)-1]
		if ms == "0" {
			wait, ms = try, "60000" // it does not wait
		}
		return yes(within(ctx, ms, func(ctx context.Context) error {
			l, err := wait(ctx)
			if err == nil {
				h.locks(l)
			}
			return err
		}))
	}
}

// locks is holds for a lock.
func (h *handle) locks(l *lock.Lock) string {
	h.object = l
	return h.holds(l.Release)
}
