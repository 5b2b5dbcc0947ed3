package lock

import (
	"context"
	"strings"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/contend"
)

// The names of Curator's InterProcessReadWriteLock, and of kazoo's ReadLock; its WriteLock is kazooName.
const (
	curatorRead  = "__READ__"
	curatorWrite = "__WRIT__"
	kazooRead    = "__rlock__"
)

// RWMutex is a lock that one writer or any number of readers have. Who comes first gets it first: readers that come while a writer waits
// wait behind it. All that use the same path share it. Safe for concurrent use.
type RWMutex struct {
	client      *recipes.Client
	path        string
	read, write string // names
	data        []byte
}

// NewRWMutex returns the read/write lock of a path: Curator's InterProcessReadWriteLock. data is what each contender's znode says of it, to
// be seen with Explain; it may be nil and is not to be changed. kazoo's ReadLock shares it when told extra_lock_patterns=["__WRIT__"], and
// its WriteLock with ["__READ__", "__WRIT__"], but not with Curator.
func NewRWMutex(c *recipes.Client, path string, data []byte) *RWMutex {
	return &RWMutex{client: c, path: path, read: curatorRead, write: curatorWrite, data: data}
}

// NewKazooRWMutex returns the read/write lock of a path with the names of kazoo's ReadLock and WriteLock, which then share it as they
// are. Those of NewRWMutex share it too; Curator does not.
func NewKazooRWMutex(c *recipes.Client, path string, data []byte) *RWMutex {
	return &RWMutex{client: c, path: path, read: kazooRead, write: kazooName, data: data}
}

// Lock waits for the write lock until ctx ends. If its session is lost while it waits, it stands in line again.
func (m *RWMutex) Lock(ctx context.Context) (*Lock, error) {
	return m.writer(acquire(ctx, m.client, m.path, m.write, m.data, contend.Exclusive))
}

// TryLock returns ErrNotAcquired if somebody has the lock in either way, or waits for it.
func (m *RWMutex) TryLock(ctx context.Context) (*Lock, error) {
	return m.writer(tryAcquire(ctx, m.client, m.path, m.write, m.data, contend.Exclusive))
}

// RLock waits for a read lock until ctx ends. If its session is lost while it waits, it stands in line again.
//
// Who has the write lock must not wait for a read lock: see Downgrade. Who has a read lock must not wait for the write lock, which can't be
// had before the read lock is let go of.
func (m *RWMutex) RLock(ctx context.Context) (*Lock, error) {
	return acquire(ctx, m.client, m.path, m.read, m.data, shared)
}

// TryRLock returns ErrNotAcquired if a writer has the lock, or waits for it.
func (m *RWMutex) TryRLock(ctx context.Context) (*Lock, error) {
	return tryAcquire(ctx, m.client, m.path, m.read, m.data, shared)
}

// With runs f while it holds the write lock. See Mutex.With.
func (m *RWMutex) With(ctx context.Context, f func(ctx context.Context) error) error {
	return withLock(ctx, m, f)
}

// WithRead runs f while it holds a read lock. See Mutex.With.
func (m *RWMutex) WithRead(ctx context.Context, f func(ctx context.Context) error) error {
	return withLock(ctx, m.RLocker(), f)
}

// RLocker returns a Locker whose Lock is RLock.
func (m *RWMutex) RLocker() Locker { return readLocker{m} }

func (m *RWMutex) owner() *recipes.Client { return m.client }

func (m *RWMutex) writer(l *Lock, err error) (*Lock, error) {
	if err != nil {
		return nil, err
	}
	l.writeLockOf = m
	return l, nil
}

type readLocker struct{ m *RWMutex }

func (r readLocker) Lock(ctx context.Context) (*Lock, error)    { return r.m.RLock(ctx) }
func (r readLocker) TryLock(ctx context.Context) (*Lock, error) { return r.m.TryRLock(ctx) }
func (r readLocker) owner() *recipes.Client                     { return r.m.client }

// shared is the rule of readers: they wait for the last writer before them, as kazoo's do. Curator's wait for the first, and look again
// when it goes, though another writer is still between.
func shared(names []string, own int) string {
	for i := own - 1; i >= 0; i-- {
		if !isReader(names[i]) {
			return names[i]
		}
	}
	return ""
}

// reads reports whether that is a reader's znode. What is not known to be one excludes everybody, as a writer does.
func isReader(name string) bool {
	_, prefix, _ := recipes.Sequence(name)
	return strings.HasSuffix(prefix, curatorRead) || strings.HasSuffix(prefix, kazooRead)
}
