package lock

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
)

// Multi is several locks as one: all are held, or none. Safe for concurrent use.
type Multi struct{ lockers []Locker }

// NewMulti returns the lock of all these, which are of one Client, namespace included; else it panics. They are locked in this order. Who
// locks some of the same must do so in the same order, or they may wait for each other for ever.
func NewMulti(lockers ...Locker) *Multi {
	if len(lockers) == 0 {
		panic("lock: NewMulti of nothing")
	}
	for _, l := range lockers {
		if l.owner() != lockers[0].owner() {
			panic("lock: NewMulti of locks of several Clients")
		}
	}
	return &Multi{lockers}
}

// Lock waits for one lock after the other until ctx ends. When one is lost while it waits for another, it begins anew.
func (m *Multi) Lock(ctx context.Context) (*MultiLock, error) {
	for {
		all, err := m.lockAll(ctx, Locker.Lock)
		if all != nil || ctx.Err() != nil || !isLost(err) {
			return all, err
		}
	}
}

// TryLock returns ErrNotAcquired if not all can be had at once.
func (m *Multi) TryLock(ctx context.Context) (*MultiLock, error) {
	return m.lockAll(ctx, Locker.TryLock)
}

// With runs f while it holds all, and unlocks them, also when f panics. See Mutex.With.
func (m *Multi) With(ctx context.Context, f func(ctx context.Context) error) error {
	all, err := m.Lock(ctx)
	if err != nil {
		return err
	}
	return with(ctx, all, all.Unlock, f)
}

func (m *Multi) lockAll(ctx context.Context, lock func(Locker, context.Context) (*Lock, error)) (*MultiLock, error) {
	all := &MultiLock{}
	for _, locker := range m.lockers {
		in, cancel := all.Within(ctx)
		l, err := lock(locker, in)
		cancel()
		if err != nil {
			if e := all.unlock(ctx); e != nil && !onlyUnknown(e) && !isLost(e) {
				err = join(err, e)
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

// Locks are several locks that are held. Safe for concurrent use.
type MultiLock struct {
	locks []*Lock
	ctx   context.Context
	end   func()
	once  sync.Once
}

// Context ends when one of them is not held any more or may not be. See Lock.Context.
func (a *MultiLock) Context() context.Context { return a.ctx }

// Within returns ctx for what is only to be done while all are held: see recipes.Hold.Within. cancel must be called.
func (a *MultiLock) Within(ctx context.Context) (in context.Context, cancel context.CancelFunc) {
	// Locks of one Client that are held are of one session, so it is enough if the last looks at the clock.
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

// Token is greater than that of all who had one of them before and had to let it go for these: also where they had others with it.
func (a *MultiLock) Token() int64 {
	// That of the last is the greatest: its znode was created when the others were held.
	return a.locks[len(a.locks)-1].Token()
}

// Locks returns them, in the order in which they were locked.
func (a *MultiLock) Locks() []*Lock { return slices.Clone(a.locks) }

// Guard returns ops with a check for each of them in front, that fail the whole multi if one is not held any more.
func (a *MultiLock) Guard(ops ...any) []any {
	for i := len(a.locks) - 1; i >= 0; i-- {
		ops = a.locks[i].Guard(ops...)
	}
	return ops
}

// Commit carries out all ops if all are still held, and else none: then the error is recipes.ErrNotHeld. See recipes.Hold.Commit.
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
			l.held.End()
			a.end()
			return nil, notHeld(l)
		}
	}
	return results[min(len(rest), len(results)):], err
}

// Unlock ends Context, and unlocks all, the last first, whatever fails; see Lock.Unlock for what the errors say.
func (a *MultiLock) Unlock(ctx context.Context) error {
	err := error(&recipes.Error{Op: "unlock", Path: a.locks[0].Path(), Err: recipes.ErrNotHeld})
	a.once.Do(func() {
		a.end()
		err = a.unlock(ctx)
	})
	return err
}

func (a *MultiLock) unlock(ctx context.Context) error {
	var errs []error
	for _, l := range slices.Backward(a.locks) {
		errs = append(errs, l.Unlock(ctx))
	}
	return errors.Join(errs...)
}
