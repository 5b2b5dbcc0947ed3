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

// Mutex is a lock with one holder at a time. Contenders are served in the order of arrival. All
// mutexes of the same path are the same lock. Safe for concurrent use: each call of Lock stands in
// line on its own.
type Mutex struct{ pathLock }

// NewMutex returns the mutex of path: Curator's InterProcessMutex. data is stored in each
// contender's znode, where Explain shows it. data may be nil, and must not be changed afterwards.
// kazoo's Lock shares the mutex if created with extra_lock_patterns=["lock-"], but then not with
// Curator.
func NewMutex(c *recipes.Client, path string, data []byte) *Mutex {
	return &Mutex{pathLock{c, path, curatorName, data, contend.Exclusive, nil}}
}

// NewKazooMutex returns the mutex of path with the names of kazoo's Lock, which then shares the
// mutex without further settings. So do mutexes of NewMutex; Curator does not.
func NewKazooMutex(c *recipes.Client, path string, data []byte) *Mutex {
	return &Mutex{pathLock{c, path, kazooName, data, contend.Exclusive, nil}}
}

// pathLock is a way to lock a path: as a mutex, for writing, or for reading.
type pathLock struct {
	client *recipes.Client
	path   string
	name   string // of the contenders' znodes
	data   []byte
	rule   contend.Rule
	writes *RWMutex // whose write lock this is, or nil
}

// Lock waits for the lock until ctx ends. If the session is lost meanwhile, Lock starts again at
// the end of the line.
func (l *pathLock) Lock(ctx context.Context) (*Lock, error) {
	held, err := contend.Acquire(ctx, l.client, l.path, l.name, l.data, l.rule)
	if err != nil {
		return nil, err
	}
	return newLock(held, l.writes), nil
}

// TryLock is Lock without waiting: if another contender holds the lock, or waits for it, the error
// is recipes.ErrNotAcquired.
func (l *pathLock) TryLock(ctx context.Context) (*Lock, error) {
	held, err := contend.TryAcquire(ctx, l.client, l.path, l.name, l.data, l.rule)
	switch {
	case err != nil:
		return nil, err
	case held == nil:
		return nil, recipes.ErrNotAcquired
	}
	return newLock(held, l.writes), nil
}

// With acquires the lock, runs f, and releases the lock, also when f panics. The context of f has
// the values of ctx, and ends with ctx or when the lock is lost. The error joins those of f and of
// Release, so With fails if the lock was lost before f returned.
func (l *pathLock) With(ctx context.Context, f func(ctx context.Context) error) error {
	return with(ctx, l.Lock, f)
}

func (l *pathLock) lock() (*recipes.Client, string) { return l.client, l.path }
