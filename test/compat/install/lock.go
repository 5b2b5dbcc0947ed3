package install

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/gozkd/gozkd/internal/backoff"
	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/internal/vfs"
)

// alone acquires the lock of this name, which all goroutines and processes share, and returns the
// function that releases the lock. Programs of test/compat run at the same time and share their
// installations. To avoid a deadlock, a holder takes further locks only in this order: a directory
// of the cache, m2, apt.
func alone(ctx context.Context, root, name string) (release func()) {
	const interval = 50 * time.Millisecond
	file := filepath.Join(cacheDir(root, "locks"), name)
	for {
		lock, err := vfs.OS{}.Lock(file)
		if err == nil {
			return func() { must.Do(lock.Close()) }
		}
		if !errors.Is(err, vfs.ErrLocked) {
			must.Do(err)
		}
		if !backoff.Sleep(ctx, interval) {
			must.Failf("install: wait for %s: %w", file, ctx.Err())
		}
	}
}
