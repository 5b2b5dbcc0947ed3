package lock

import (
	"context"
	"errors"
	"sync"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/calls"
	"github.com/gozkd/gozkd/recipes/internal/contend"
	"github.com/gozkd/gozkd/recipes/internal/holding"
)

// Locker is a *Mutex or, to be locked for writing, an *RWMutex; see RWMutex.RLocker.
type Locker interface {
	// Lock waits for the lock until ctx ends. The present holder may be in this process or another.
	Lock(ctx context.Context) (*Lock, error)
	// TryLock returns recipes.ErrNotAcquired if the lock cannot be acquired at once.
	TryLock(ctx context.Context) (*Lock, error)

	lock() (c *recipes.Client, path string)
}

// Lock is a lock, or a lease of a semaphore, that is held. Its Context ends when the lock is no
// longer held, or may not be: when the session ends by the client's clock, which is before the
// server can give the lock to somebody else; when the lock's znode is deleted; and with Release.
// Its Token is greater than the token of every earlier holder that excluded this holder; readers
// that hold the lock together may have the same token. Safe for concurrent use.
type Lock struct {
	*recipes.Hold
	writes *RWMutex // whose write lock this is, or nil

	mu    sync.Mutex // guards depth
	depth int        // how many calls of Release are outstanding
}

func newLock(h *recipes.Hold, writes *RWMutex) *Lock { return &Lock{Hold: h, writes: writes, depth: 1} }

// Again acquires a held lock once more, for a function that locks and is called with the lock held.
// No request is sent. Each successful call needs another Release. The error is recipes.ErrNotHeld
// if the lock is no longer held.
func (l *Lock) Again() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.depth == 0 || l.Context().Err() != nil {
		return &recipes.Error{Op: "lock again", Path: l.Path(), Err: recipes.ErrNotHeld}
	}
	l.depth++
	return nil
}

// Release undoes one Lock or Again. The last Release ends Context and deletes the znode. If ctx
// ends first, the deletion continues in the background.
//
// An error that wraps recipes.ErrSessionLost or recipes.ErrNotHeld says that the lock had been
// lost, or had been released already. Any other error that wraps recipes.ErrOutcomeUnknown says
// that the deletion continues in the background.
func (l *Lock) Release(ctx context.Context) error {
	l.mu.Lock()
	depth := l.depth
	l.depth = max(0, depth-1)
	l.mu.Unlock()
	switch depth {
	case 0:
		return &recipes.Error{Op: "release", Path: l.Path(), Err: recipes.ErrNotHeld}
	case 1:
		return errors.Join(holding.Release(ctx, l.Hold, "release"))
	}
	return nil
}

func with(ctx context.Context, acquire func(context.Context) (*Lock, error), f func(context.Context) error) error {
	if err := holding.CheckFunc(f == nil); err != nil {
		return err
	}
	l, err := acquire(ctx)
	if err != nil {
		return err
	}
	_, err = holding.With(ctx, l.Hold, "release", f)
	return err
}

// handOver is Release by a holder that has something in place of l, which stays valid if the
// deletion of l continues in the background, or if somebody has deleted its znode.
func (l *Lock) handOver(ctx context.Context) error {
	err := l.Release(ctx)
	if calls.Continues(err) || errors.Is(err, recipes.ErrNotHeld) {
		return nil
	}
	return err
}

// revokeMessage is the data that Curator's Revoker writes to a contender's znode.
var revokeMessage = []byte("__REVOKE__")

// Revoke asks the contender whose znode is at path, as Explain returns it, to release the lock.
// That closes the holder's Hold.Revoked, or calls the RevocationListener of a Curator lock. Revoke
// does not wait for the release, and the holder may ignore the request. The contender's data are
// overwritten. A missing znode is no error.
func Revoke(ctx context.Context, c *recipes.Client, path string) error {
	_, err := c.Idempotent().Set(ctx, path, revokeMessage, -1)
	return contend.IgnoreMissing(err)
}
