package lock

import (
	"bytes"
	"context"
	"errors"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/contend"
)

// ErrNotAcquired is returned by the Try methods when somebody else holds the lock or the lease, or
// waits ahead of the caller.
var ErrNotAcquired = errors.New("lock: not acquired")

// Locker is implemented by *Mutex, by *RWMutex (which is then locked for writing), and by the
// result of RWMutex.RLocker.
type Locker interface {
	// Lock waits for the lock until ctx ends. The present holder may be in this process or another.
	Lock(ctx context.Context) (*Lock, error)
	// TryLock returns ErrNotAcquired if the lock cannot be acquired at once.
	TryLock(ctx context.Context) (*Lock, error)

	owner() *recipes.Client
}

// Lock is a lock that is held. Safe for concurrent use.
type Lock struct {
	held    *recipes.Hold
	writes  *RWMutex // whose write lock this is, or nil
	revoked chan struct{}

	mu          sync.Mutex // guards the fields below
	depth       int        // how many calls of Unlock are outstanding
	revokeAsked bool       // revoked is closed
}

func newLock(h *recipes.Hold, writes *RWMutex) *Lock {
	l := &Lock{held: h, writes: writes, depth: 1, revoked: make(chan struct{})}
	h.OnData(l.onData)
	return l
}

// Context ends when the lock is no longer held, or may not be: when the session ends by the
// client's clock, which is before the server can give the lock to somebody else; when the lock's
// znode is deleted; and when the lock is unlocked.
func (l *Lock) Context() context.Context { return l.held.Context() }

// Within returns a context for work that must only be done while the lock is held: see
// recipes.Hold.Within. cancel must be called.
func (l *Lock) Within(ctx context.Context) (in context.Context, cancel context.CancelFunc) {
	return l.held.Within(ctx)
}

// Token is greater than the token of every earlier holder that excluded this holder. Readers that
// hold the lock together may have the same token.
func (l *Lock) Token() int64 { return l.held.Token() }

// Path is the path of the lock's znode, which Revoke takes.
func (l *Lock) Path() string { return l.held.Path() }

// Guard returns ops preceded by a check that makes the whole multi fail if the lock is no longer
// held.
func (l *Lock) Guard(ops ...any) []any { return l.held.Guard(ops...) }

// Commit applies all ops if the lock is still held. Otherwise no op is applied, and the error is
// recipes.ErrNotHeld. See recipes.Hold.Commit.
func (l *Lock) Commit(ctx context.Context, ops ...any) ([]zk.MultiResponse, error) {
	return l.held.Commit(ctx, ops...)
}

// Again acquires a held lock once more, for a function that locks and is called with the lock held.
// No request is sent. Each successful call needs another Unlock. The error is recipes.ErrNotHeld if
// the lock is no longer held.
func (l *Lock) Again() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.depth == 0 || l.held.Context().Err() != nil {
		return &recipes.Error{Op: "lock again", Path: l.Path(), Err: recipes.ErrNotHeld}
	}
	l.depth++
	return nil
}

// Unlock undoes one Lock or Again. The last Unlock ends Context and deletes the znode. If ctx ends
// first, the deletion continues in the background.
//
// An error that wraps recipes.ErrSessionLost or recipes.ErrNotHeld says that the lock had been
// lost, or had been unlocked already. Any other error that wraps recipes.ErrOutcomeUnknown says
// that the deletion continues in the background.
func (l *Lock) Unlock(ctx context.Context) error {
	l.mu.Lock()
	depth := l.depth
	l.depth = max(0, depth-1)
	l.mu.Unlock()
	switch depth {
	case 0:
		return &recipes.Error{Op: "unlock", Path: l.Path(), Err: recipes.ErrNotHeld}
	case 1:
		return release(ctx, l.held)
	}
	return nil
}

// Revoked returns a channel that is closed when somebody asks the holder to release the lock, with
// Revoke or with Curator's Revoker. Nothing else happens then. A request is noticed no earlier than
// 20 ms after the lock was acquired.
func (l *Lock) Revoked() <-chan struct{} { return l.revoked }

// revokeMessage is the data that Curator's Revoker writes to a contender's znode.
var revokeMessage = []byte("__REVOKE__")

// Revoke asks the contender whose znode is at path, as Explain returns it, to release the lock.
// That closes the holder's Lock.Revoked, or calls the RevocationListener of a Curator lock. Revoke
// does not wait for the release, and the holder may ignore the request. The contender's data are
// overwritten. A missing znode is no error.
func Revoke(ctx context.Context, c *recipes.Client, path string) error {
	_, err := c.Idempotent().Set(ctx, path, revokeMessage, -1)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}

// onData is called with the new data of the lock's znode.
func (l *Lock) onData(data []byte, _ *zk.Stat) {
	if !bytes.Equal(data, revokeMessage) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.revokeAsked {
		l.revokeAsked = true
		close(l.revoked)
	}
}

// release releases h. The error says if h had been lost before.
func release(ctx context.Context, h *recipes.Hold) error {
	var before error
	if h.Context().Err() != nil {
		before = &recipes.Error{Op: "unlock", Path: h.Path(), Err: context.Cause(h.Context())}
	}
	if h.Session().Context().Err() != nil {
		return before // the znode is deleted with the session
	}
	return join(before, h.Release(ctx))
}

// runAndRelease runs f while held lasts and then calls release, also when f panics. A release that
// continues in the background is no error.
func runAndRelease(ctx context.Context, held interface {
	Within(ctx context.Context) (in context.Context, cancel context.CancelFunc)
}, release, f func(context.Context) error) (err error) {
	in, cancel := held.Within(ctx)
	defer func() {
		cancel()
		if e := release(ctx); e != nil && !onlyUnknown(e) {
			err = join(err, e)
		}
	}()
	return f(in)
}

// join is errors.Join, except that a single error is returned unwrapped.
func join(a, b error) error {
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	return errors.Join(a, b)
}

// onlyUnknown reports whether err only says that something continues in the background.
func onlyUnknown(err error) bool {
	return errors.Is(err, recipes.ErrOutcomeUnknown) && !contend.IsLost(err)
}
