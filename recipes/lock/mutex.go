package lock

import (
	"context"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/contend"
)

// The names of Curator's InterProcessMutex and of kazoo's Lock and WriteLock.
const (
	curatorName = "lock-"
	kazooName   = "__lock__"
)

// Mutex is a lock that one at a time has: who comes first gets it first. All that use the same path share it. Safe for concurrent
// use: each Lock stands in line on its own, also those of one Mutex.
type Mutex struct {
	client *recipes.Client
	path   string
	name   string
	data   []byte
}

// NewMutex returns the mutex of a path: Curator's InterProcessMutex. data is what each contender's znode says of it, to be seen with
// Explain; it may be nil and is not to be changed. A kazoo Lock that is told extra_lock_patterns=["lock-"] shares it, but not with Curator.
func NewMutex(c *recipes.Client, path string, data []byte) *Mutex {
	return &Mutex{client: c, path: path, name: curatorName, data: data}
}

// NewKazooMutex returns the mutex of a path with the names of kazoo's Lock, which then shares it as it is. Mutexes of NewMutex share it
// too; Curator does not.
func NewKazooMutex(c *recipes.Client, path string, data []byte) *Mutex {
	return &Mutex{client: c, path: path, name: kazooName, data: data}
}

// Lock waits for the lock until ctx ends. If its session is lost while it waits, it stands in line again.
func (m *Mutex) Lock(ctx context.Context) (*Lock, error) {
	return acquire(ctx, m.client, m.path, m.name, m.data, contend.Exclusive)
}

// TryLock returns ErrNotAcquired if somebody has the lock, or waits for it.
func (m *Mutex) TryLock(ctx context.Context) (*Lock, error) {
	return tryAcquire(ctx, m.client, m.path, m.name, m.data, contend.Exclusive)
}

// With runs f while it holds the lock, and unlocks, also when f panics. The ctx of f ends with ctx, and when the lock is lost; it has the
// values of ctx. The error is that of f, with what Unlock said: so it is not nil if the lock was lost before f returned.
func (m *Mutex) With(ctx context.Context, f func(ctx context.Context) error) error {
	return withLock(ctx, m, f)
}

func (m *Mutex) owner() *recipes.Client { return m.client }

func acquire(ctx context.Context, c *recipes.Client, path, name string, data []byte, rule contend.Rule) (*Lock, error) {
	held, err := contend.Acquire(ctx, c, path, name, data, rule)
	if err != nil {
		return nil, err
	}
	return newLock(held), nil
}

func tryAcquire(ctx context.Context, c *recipes.Client, path, name string, data []byte, rule contend.Rule) (*Lock, error) {
	held, err := contend.TryAcquire(ctx, c, path, name, data, rule)
	switch {
	case err != nil:
		return nil, err
	case held == nil:
		return nil, ErrNotAcquired
	}
	return newLock(held), nil
}
