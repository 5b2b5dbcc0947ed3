package lock

import (
	"context"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/calls"
	"github.com/gozkd/gozkd/recipes/internal/holding"
)

// Multi combines several locks, and acquires all of them or none. Safe for concurrent use.
type Multi struct{ lockers []Locker }

// NewMulti combines lockers, which are locked in the given order. NewMulti panics unless all are of
// one Client and namespace, and of different paths. Two Multis with several locks in common must
// list those in the same order, or they can deadlock.
func NewMulti(lockers ...Locker) *Multi {
	if len(lockers) == 0 {
		panic("lock: NewMulti needs at least one locker")
	}
	client, _ := lockers[0].lock()
	paths := make(map[string]bool)
	for _, l := range lockers {
		c, path := l.lock()
		if c != client {
			panic("lock: NewMulti with lockers of several Clients")
		}
		if paths[path] {
			panic("lock: NewMulti with two lockers of " + path + ", which would wait for each other")
		}
		paths[path] = true
	}
	return &Multi{lockers}
}

// Lock waits for the locks in order, until ctx ends. If an acquired lock is lost while Lock waits
// for the next, Lock releases all and starts again.
//
// The Context of the result ends when any of the locks is no longer held, or may not be. Its Token
// exceeds the token of every earlier holder of any of these locks, including holders of a different
// combination. Release releases the last lock first.
func (m *Multi) Lock(ctx context.Context) (*Lock, error) {
	return calls.Again(ctx, func() (*Lock, error) { return m.lockAll(ctx, Locker.Lock) })
}

// TryLock returns recipes.ErrNotAcquired if not all locks can be acquired at once.
func (m *Multi) TryLock(ctx context.Context) (*Lock, error) {
	return m.lockAll(ctx, Locker.TryLock)
}

// With acquires all locks, runs f, and releases them, also when f panics. See Mutex.With.
func (m *Multi) With(ctx context.Context, f func(ctx context.Context) error) error {
	return with(ctx, m.Lock, f)
}

func (m *Multi) lockAll(ctx context.Context, lock func(Locker, context.Context) (*Lock, error)) (*Lock, error) {
	first, err := lock(m.lockers[0], ctx)
	if err != nil {
		return nil, err
	}
	all := first.Hold
	for _, locker := range m.lockers[1:] {
		in, cancel := all.Within(ctx)
		l, err := lock(locker, in)
		cancel()
		if err != nil {
			_, released := holding.Release(ctx, all, "release")
			return nil, calls.WithCleanup(err, released)
		}
		// The last lock has the greatest token: its znode was created while the others were held.
		all = recipes.JoinHolds(all, l.Hold)
	}
	return newLock(all, nil), nil
}
