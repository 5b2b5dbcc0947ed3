package lock

import (
	"context"
	"strings"

	"github.com/gozkd/gozkd/internal/sequence"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/contend"
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

// RLock waits for a read lock until ctx ends. If the session is lost meanwhile, RLock starts again
// at the end of the line.
func (m *RWMutex) RLock(ctx context.Context) (*Lock, error) { return m.reading.Lock(ctx) }

// RLocker returns a Mutex whose methods are for reading: TryLock, for example, fails if a writer
// holds the lock or waits for it.
func (m *RWMutex) RLocker() *Mutex { return &m.reading }

// readRule makes a reader wait for the last writer before it, as kazoo's readers do. Curator's wait
// for the first writer, and look again when that writer is gone and another writer is still before
// them.
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
