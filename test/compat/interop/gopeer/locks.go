package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

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
	all["wlock-then-rlock"] = func(ctx context.Context, h *handle, a []string) (string, error) {
		rw := lock.NewRWMutex(h.client, a[0], nil)
		w, err := rw.Lock(ctx)
		if err != nil {
			return "", err
		}
		r, err := rw.Downgrade(ctx, w)
		if err != nil {
			return "", err
		}
		return h.holds(r.Unlock, nil)
	}
	all["lock-revocable"] = func(ctx context.Context, h *handle, a []string) (string, error) {
		l, err := lock.NewMutex(h.client, a[0], nil).Lock(ctx)
		if err != nil {
			return "", err
		}
		h.object = l
		return h.holds(l.Unlock, nil)
	}
	all["revoked"] = func(ctx context.Context, h *handle, a []string) (string, error) {
		asked, err := within(ctx, a[0], func(ctx context.Context) error {
			select {
			case <-h.object.(*lock.Lock).Revoked():
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		return yes(asked), err
	}
	all["revoke"] = func(ctx context.Context, h *handle, a []string) (string, error) {
		return "", lock.Revoke(ctx, h.client, a[0])
	}
	all["acquire-shared"] = func(ctx context.Context, h *handle, a []string) (string, error) {
		l, err := lock.NewSharedSemaphore(h.client, a[0], shared.NewInt(h.client, a[1]), nil).Acquire(ctx)
		if err != nil {
			return "", err
		}
		return h.holds(l.Release, nil)
	}
	// The numbers of holders and of waiters.
	all["line"] = func(ctx context.Context, h *handle, a []string) (string, error) {
		line, err := lock.Explain(ctx, h.client, a[0])
		return fmt.Sprintf("%d %d", len(line.Holders), len(line.Waiters)), err
	}
}

func addLocker(all map[string]verb, prefix, name string, locker func(c *recipes.Client, path string) lock.Locker) {
	all[prefix+name] = func(ctx context.Context, h *handle, a []string) (string, error) {
		l, err := locker(h.client, a[0]).Lock(ctx)
		if err != nil {
			return "", err
		}
		return h.holds(l.Unlock, nil)
	}
	all["try"+prefix+name] = func(ctx context.Context, h *handle, a []string) (string, error) {
		var l *lock.Lock
		got, err := tried(ctx, a[1], func(ctx context.Context, wait bool) (err error) {
			if wait {
				l, err = locker(h.client, a[0]).Lock(ctx)
			} else {
				l, err = locker(h.client, a[0]).TryLock(ctx)
			}
			return err
		})
		if !got {
			return "no", err
		}
		_, err = h.holds(l.Unlock, nil)
		return "yes", err
	}
}

func addSemaphore(all map[string]verb, n names) {
	semaphore := func(h *handle, a []string) (*lock.Semaphore, error) {
		most, err := strconv.Atoi(a[1])
		return n.semaphore(h.client, a[0], most, nil), err
	}
	all[n.prefix+"acquire"] = func(ctx context.Context, h *handle, a []string) (string, error) {
		s, err := semaphore(h, a)
		if err != nil {
			return "", err
		}
		l, err := s.Acquire(ctx)
		if err != nil {
			return "", err
		}
		return h.holds(l.Release, nil)
	}
	all["try"+n.prefix+"acquire"] = func(ctx context.Context, h *handle, a []string) (string, error) {
		s, err := semaphore(h, a)
		if err != nil {
			return "", err
		}
		var l *lock.Lease
		got, err := tried(ctx, a[2], func(ctx context.Context, wait bool) (err error) {
			if wait {
				l, err = s.Acquire(ctx)
			} else {
				l, err = s.TryAcquire(ctx)
			}
			return err
		})
		if !got {
			return "no", err
		}
		_, err = h.holds(l.Release, nil)
		return "yes", err
	}
}

// tried is within, but does not wait if there are no milliseconds.
func tried(ctx context.Context, ms string, take func(ctx context.Context, wait bool) error) (bool, error) {
	if ms != "0" {
		return within(ctx, ms, func(ctx context.Context) error { return take(ctx, true) })
	}
	err := take(ctx, false)
	if errors.Is(err, lock.ErrNotAcquired) {
		return false, nil
	}
	return err == nil, err
}
