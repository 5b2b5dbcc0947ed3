package lock

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/internal/sequence"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/calls"
	"github.com/gozkd/gozkd/recipes/internal/contend"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// The names of Curator's InterProcessReadWriteLock, and of kazoo's ReadLock. kazoo's WriteLock uses
// kazooName.
const (
	curatorRead  = "__READ__"
	curatorWrite = "__WRIT__"
	kazooRead    = "__rlock__"
)

// RWMutex is a lock that is held by one writer or by any number of readers. Lock, TryLock and With
// are those of the write lock. Contenders are served in the order of arrival: a reader that arrives
// while a writer waits is served after that writer. All RWMutexes of the same path are the same
// lock. Safe for concurrent use.
//
// The holder of a read lock must not wait for the write lock, nor the holder of the write lock for
// a read lock: they would wait for themselves. Downgrade turns a write lock into a read lock.
type RWMutex struct {
	pathLock // for writing
	reading  Mutex
}

// NewRWMutex returns the read/write lock of path: Curator's InterProcessReadWriteLock. data is
// stored in each contender's znode, where Explain shows it. data may be nil, and must not be
// changed afterwards. kazoo's ReadLock shares the lock if created with
// extra_lock_patterns=["__WRIT__"], and kazoo's WriteLock with ["__READ__", "__WRIT__"], but then
// not with Curator.
func NewRWMutex(c *recipes.Client, path string, data []byte) *RWMutex {
	return newRWMutex(c, path, curatorWrite, curatorRead, data)
}

// NewKazooRWMutex returns the read/write lock of path with the names of kazoo's ReadLock and
// WriteLock, which then share the lock without further settings. So do locks of NewRWMutex; Curator
// does not.
func NewKazooRWMutex(c *recipes.Client, path string, data []byte) *RWMutex {
	return newRWMutex(c, path, kazooName, kazooRead, data)
}

func newRWMutex(c *recipes.Client, path, write, read string, data []byte) *RWMutex {
	m := &RWMutex{reading: Mutex{pathLock{c, path, read, data, readRule, nil}}}
	m.pathLock = pathLock{c, path, write, data, contend.Exclusive, m}
	return m
}

// RLocker returns the read lock: its TryLock, for example, fails if a writer holds it or waits.
func (m *RWMutex) RLocker() *Mutex { return &m.reading }

// readRule makes a reader wait for the last writer before it, as kazoo's readers do. Curator's wait
// for the first writer, and look again when that is gone and another is still before them.
func readRule(names []string, own int) string {
	for i := own - 1; i >= 0; i-- {
		if !isReader(names[i]) {
			return names[i]
		}
	}
	return ""
}

// isReader reports whether name is that of a reader's znode. A znode with an unknown name excludes
// everybody, as a writer does.
func isReader(name string) bool {
	_, prefix, _ := sequence.Parse(name)
	return strings.HasSuffix(prefix, curatorRead) || strings.HasSuffix(prefix, kazooRead)
}

// Downgrade turns the write lock w into a read lock, with no other writer in between, and releases
// w once; readers that wait are then served. If Downgrade fails, no read lock is held, and w is
// unchanged or lost. Downgrade panics if w is not a write lock of m.
//
// If w was acquired again with Lock.Again, w stays held together with the read lock until its
// remaining calls of Release.
func (m *RWMutex) Downgrade(ctx context.Context, w *Lock) (*Lock, error) {
	if w.writes != m {
		panic("lock: Downgrade of a lock that is not a write lock of this RWMutex")
	}
	if w.Context().Err() != nil {
		return nil, &recipes.Error{Op: "downgrade", Path: w.Path(), Err: recipes.ErrNotHeld}
	}
	r, err := m.readInPlaceOf(ctx, w.Hold)
	if err != nil {
		return nil, err
	}
	// If somebody deleted the znode of w just now, the znode of r already existed.
	if err := w.handOver(ctx); err != nil {
		return nil, errors.Join(err, r.Release(ctx))
	}
	return r, nil
}

// readInPlaceOf creates a reader's znode with the number of the writer's znode, as Curator does, so
// the reader stands before everybody who arrived after the writer. The writer's znode must still
// exist once the reader's does: then no other writer came in between.
func (m *RWMutex) readInPlaceOf(ctx context.Context, w *recipes.Hold) (*Lock, error) {
	in, cancel := w.Within(ctx)
	defer cancel()
	_, prefix, _ := sequence.Parse(w.Path())
	number := w.Path()[len(prefix):]
	path, err := m.client.Create(in, znodepath.Join(m.path, m.reading.name+number), m.data, recipes.CreateOptions{Ephemeral: true, Protected: true})
	if err != nil {
		return nil, err
	}
	names, stat, err := m.client.Children(in, m.path)
	if errors.Is(err, proto.ErrNoNode) || err == nil && !slices.Contains(names, znodepath.Base(w.Path())) {
		err = &recipes.Error{Op: "downgrade", Path: w.Path(), Err: recipes.ErrNotHeld}
	}
	if err == nil {
		return newLock(m.client.NewHold(recipes.HoldSpec{Session: w.Session(), Path: path, Token: int64(stat.Pzxid)}), nil), nil
	}
	return nil, calls.Undo(ctx, m.client, w.Session(), err, path)
}
