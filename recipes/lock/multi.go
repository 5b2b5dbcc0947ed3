package lock

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/contend"
)

// Multi combines several locks, and acquires all of them or none. Safe for concurrent use.
type Multi struct{ lockers []Locker }

// NewMulti combines lockers, which are locked in the given order. NewMulti panics unless all are of
// one Client and namespace. Two Multis with several locks in common must list those in the same
// order, or they can deadlock.
func NewMulti(lockers ...Locker) *Multi {
	if len(lockers) == 0 {
		panic("lock: NewMulti needs at least one locker")
	}
	for _, l := range lockers {
		if l.owner() != lockers[0].owner() {
			panic("lock: NewMulti with lockers of several Clients")
		}
	}
	return &Multi{lockers}
}

// Lock waits for the locks in order, until ctx ends. If an acquired lock is lost while Lock waits
// for the next, Lock releases all and starts again.
func (m *Multi) Lock(ctx context.Context) (*MultiLock, error) {
	for {
		all, err := m.lockAll(ctx, Locker.Lock)
		if all != nil || ctx.Err() != nil || !contend.IsLost(err) {
			return all, err
		}
	}
}

// TryLock returns recipes.ErrNotAcquired if not all locks can be acquired at once.
func (m *Multi) TryLock(ctx context.Context) (*MultiLock, error) {
	return m.lockAll(ctx, Locker.TryLock)
}

// With acquires all locks, runs f, and releases them, also when f panics. See Mutex.With.
func (m *Multi) With(ctx context.Context, f func(ctx context.Context) error) error {
	all, err := m.Lock(ctx)
	if err != nil {
		return err
	}
	return contend.With(ctx, all, all.Release, f)
}

func (m *Multi) lockAll(ctx context.Context, lock func(Locker, context.Context) (*Lock, error)) (*MultiLock, error) {
	all := &MultiLock{}
	for _, locker := range m.lockers {
		in, cancel := all.Within(ctx)
		l, err := lock(locker, in)
		cancel()
		if err != nil {
			if e := all.release(ctx); e != nil && !contend.OnlyUnknown(e) && !contend.IsLost(e) {
				err = errors.Join(err, e)
			}
			return nil, err
		}
		all.locks = append(all.locks, l)
	}
	base, end := context.WithCancelCause(context.Background())
	ctx, cancel := all.Within(base)
	all.ctx, all.end = ctx, func() {
		end(recipes.ErrNotHeld)
		cancel()
	}
	return all, nil
}

// MultiLock is several locks that are held. Safe for concurrent use.
type MultiLock struct {
	locks []*Lock
	ctx   context.Context
	end   func()
	once  sync.Once
}

// Context ends when any of the locks is no longer held, or may not be. See Lock.Context.
func (a *MultiLock) Context() context.Context { return a.ctx }

// Within returns a context for work that must only be done while all locks are held: see
// recipes.Hold.Within. cancel must be called.
func (a *MultiLock) Within(ctx context.Context) (in context.Context, cancel context.CancelFunc) {
	in, cancels := ctx, []context.CancelFunc{}
	for _, l := range a.locks {
		in, cancel = l.Within(in)
		cancels = append(cancels, cancel)
	}
	return in, func() {
		for _, cancel := range slices.Backward(cancels) {
			cancel()
		}
	}
}

// Token exceeds the token of every earlier holder of any of these locks, including holders of a
// different combination.
func (a *MultiLock) Token() int64 {
	// The last lock has the greatest token: its znode was created while the others were held.
	return a.locks[len(a.locks)-1].Token()
}

// Locks returns the single locks in the order in which they were acquired.
func (a *MultiLock) Locks() []*Lock { return slices.Clone(a.locks) }

// Guard returns ops preceded by a check per lock. The whole multi fails if a lock is no longer
// held.
func (a *MultiLock) Guard(ops ...any) []any {
	for i := len(a.locks) - 1; i >= 0; i-- {
		ops = a.locks[i].Guard(ops...)
	}
	return ops
}

// Commit applies all ops if all locks are still held. Otherwise no op is applied, and the error is
// recipes.ErrNotHeld. See recipes.Hold.Commit.
func (a *MultiLock) Commit(ctx context.Context, ops ...any) ([]zk.MultiResponse, error) {
	notHeld := func(l *Lock) error {
		return &recipes.Error{Op: "commit", Path: l.Path(), Err: recipes.ErrNotHeld}
	}
	first, rest := a.locks[0], a.locks[1:]
	if a.ctx.Err() != nil {
		return nil, notHeld(first)
	}
	in, cancel := a.Within(ctx)
	defer cancel()
	results, err := first.Commit(in, (&MultiLock{locks: rest}).Guard(ops...)...)
	for i, l := range rest[:min(len(rest), len(results))] {
		if errors.Is(results[i].Error, zk.ErrNoNode) {
			l.Hold.End()
			a.end()
			return nil, notHeld(l)
		}
	}
	return results[min(len(rest), len(results)):], err
}

// Release ends Context and releases all locks, the last first, also after an error. Lock.Release
// explains the errors.
func (a *MultiLock) Release(ctx context.Context) error {
	err := error(&recipes.Error{Op: "release", Path: a.locks[0].Path(), Err: recipes.ErrNotHeld})
	a.once.Do(func() {
		a.end()
		err = a.release(ctx)
	})
	return err
}

func (a *MultiLock) release(ctx context.Context) error {
	var errs []error
	for _, l := range slices.Backward(a.locks) {
		errs = append(errs, l.Release(ctx))
	}
	return errors.Join(errs...)
}
