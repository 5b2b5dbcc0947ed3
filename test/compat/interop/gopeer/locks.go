package main

import (
	"context"
	"errors"
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

// addLocks adds mutex, read/write lock and semaphore. "try..." takes milliseconds, 0 for the Try
// form, and answers yes or no.
func addLocks(all map[string]verb) {
	for _, n := range []names{
		{"", lock.NewMutex, lock.NewRWMutex, lock.NewSemaphore},
		{"kazoo-", lock.NewKazooMutex, lock.NewKazooRWMutex, lock.NewKazooSemaphore},
		{"extra-", lock.NewMutex, lock.NewRWMutex, lock.NewSemaphore},
	} {
		addLocker(all, n.prefix, "lock", func(c *recipes.Client, path string) lock.Locker { return n.mutex(c, path, nil) })
		addLocker(all, n.prefix, "wlock", func(c *recipes.Client, path string) lock.Locker { return n.rw(c, path, nil) })
		addLocker(all, n.prefix, "rlock", func(c *recipes.Client, path string) lock.Locker { return n.rw(c, path, nil).RLocker() })
		addSemaphore(all, n)
	}
	all["wlock-then-rlock"] = func(ctx context.Context, h *handle, a []string) string {
		rw := lock.NewRWMutex(h.client, a[0], nil)
		w := must.Get(rw.Lock(ctx))
		r := must.Get(rw.Downgrade(ctx, w))
		return h.holds(r.Release)
	}
	all["lock-revocable"] = func(ctx context.Context, h *handle, a []string) string {
		l := must.Get(lock.NewMutex(h.client, a[0], nil).Lock(ctx))
		h.object = l
		return h.holds(l.Release)
	}
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
		l := must.Get(lock.NewSharedSemaphore(h.client, a[0], shared.NewInt(h.client, a[1]), nil).Acquire(ctx))
		return h.holds(l.Release)
	}
	// The numbers of holders and of waiters.
	all["line"] = func(ctx context.Context, h *handle, a []string) string {
		line := must.Get(lock.Explain(ctx, h.client, a[0]))
		return fmt.Sprintf("%d %d", len(line.Holders), len(line.Waiters))
	}
}

func addLocker(all map[string]verb, prefix, name string, locker func(c *recipes.Client, path string) lock.Locker) {
	all[prefix+name] = func(ctx context.Context, h *handle, a []string) string {
		return h.holds(must.Get(locker(h.client, a[0]).Lock(ctx)).Release)
	}
	all["try"+prefix+name] = func(ctx context.Context, h *handle, a []string) string {
		s := locker(h.client, a[0])
		l, got := tried(ctx, a[1], s.Lock, s.TryLock)
		if got {
			h.holds(l.Release)
		}
		return yes(got)
	}
}

func addSemaphore(all map[string]verb, n names) {
	semaphore := func(h *handle, a []string) *lock.Semaphore {
		return n.semaphore(h.client, a[0], must.Get(strconv.Atoi(a[1])), nil)
	}
	all[n.prefix+"acquire"] = func(ctx context.Context, h *handle, a []string) string {
		return h.holds(must.Get(semaphore(h, a).Acquire(ctx)).Release)
	}
	all["try"+n.prefix+"acquire"] = func(ctx context.Context, h *handle, a []string) string {
		s := semaphore(h, a)
		l, got := tried(ctx, a[2], s.Acquire, s.TryAcquire)
		if got {
			h.holds(l.Release)
		}
		return yes(got)
	}
}

// tried acquires with wait in at most ms milliseconds, or with try if ms is 0.
func tried[T any](ctx context.Context, ms string, wait, try func(ctx context.Context) (T, error)) (held T, got bool) {
	if ms != "0" {
		got = within(ctx, ms, func(ctx context.Context) (err error) {
			held, err = wait(ctx)
			return err
		})
		return held, got
	}
	held, err := try(ctx)
	if errors.Is(err, recipes.ErrNotAcquired) {
		return held, false
	}
	must.Do(err)
	return held, true
}
