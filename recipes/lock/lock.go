package lock

import (
	"bytes"
	"context"
	"errors"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
)

// ErrNotAcquired is what the Try forms return when somebody else has it, or is before us.
var ErrNotAcquired = errors.New("lock: not acquired")

// Locker is what can be locked: a *Mutex, a *RWMutex, which is then locked for writing, or what RWMutex.RLocker returns.
type Locker interface {
	// Lock waits for the lock until ctx ends. Whoever has it may have got it in another process, or in this one.
	Lock(ctx context.Context) (*Lock, error)
	// TryLock returns ErrNotAcquired if the lock can't be had at once.
	TryLock(ctx context.Context) (*Lock, error)

	owner() *recipes.Client
}

// Lock is a lock that is held. Safe for concurrent use.
type Lock struct {
	held        *recipes.Hold
	writeLockOf *RWMutex // whose write lock it is, or nil
	revoked     chan struct{}

	mu          sync.Mutex // guards what follows
	depth       int        // how often it is to be unlocked
	revokeAsked bool       // revoked is closed
}

func newLock(h *recipes.Hold) *Lock {
	l := &Lock{held: h, depth: 1, revoked: make(chan struct{})}
	h.OnData(l.onData)
	return l
}

// Context ends when the lock is not held any more or may not be: with the session, by the client's clock, before the server can give it
// to somebody else; when somebody deletes the znode; when it is unlocked.
func (l *Lock) Context() context.Context { return l.held.Context() }

// Within returns ctx for what is only to be done while the lock is held: see recipes.Hold.Within. cancel must be called.
func (l *Lock) Within(ctx context.Context) (in context.Context, cancel context.CancelFunc) {
	return l.held.Within(ctx)
}

// Token is greater than that of all who had the lock before and had to let it go for this one. Readers of one time may have the same.
func (l *Lock) Token() int64 { return l.held.Token() }

// Path is that of the znode. It is what Revoke asks for.
func (l *Lock) Path() string { return l.held.Path() }

// Guard returns ops with a check in front that fails the whole multi if the lock is not held any more.
func (l *Lock) Guard(ops ...any) []any { return l.held.Guard(ops...) }

// Commit carries out all ops if the lock is still held, and else none: then the error is recipes.ErrNotHeld. See recipes.Hold.Commit.
func (l *Lock) Commit(ctx context.Context, ops ...any) ([]zk.MultiResponse, error) {
	return l.held.Commit(ctx, ops...)
}

// Again locks once more what is held already: for a function that locks, called by one that has locked. It asks the server nothing. The
// error is recipes.ErrNotHeld if the lock is not held any more.
func (l *Lock) Again() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.depth == 0 || l.held.Context().Err() != nil {
		return &recipes.Error{Op: "lock again", Path: l.Path(), Err: recipes.ErrNotHeld}
	}
	l.depth++
	return nil
}

// Unlock unlocks once. The last that is needed ends Context, and then deletes the znode, in the background if ctx ends before.
//
// An error that wraps recipes.ErrSessionLost or recipes.ErrNotHeld says that the lock was lost before, or unlocked already. Another one
// that wraps recipes.ErrOutcomeUnknown says that it goes on in the background.
func (l *Lock) Unlock(ctx context.Context) error {
	l.mu.Lock()
	switch l.depth {
	case 0:
		l.mu.Unlock()
		return &recipes.Error{Op: "unlock", Path: l.Path(), Err: recipes.ErrNotHeld}
	case 1:
		l.depth = 0
		l.mu.Unlock()
		return release(ctx, l.held)
	}
	l.depth--
	l.mu.Unlock()
	return nil
}

// Revoked is closed when somebody asks by Revoke, or Curator's Revoker, that the lock be let go of. Nothing else happens then. It may be
// asked some 20 ms after the lock is held at the earliest.
func (l *Lock) Revoked() <-chan struct{} { return l.revoked }

// changed is told what the znode's data are now.
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

// release lets go of what is held. The error says if it was lost before.
func release(ctx context.Context, h *recipes.Hold) error {
	var before error
	if h.Context().Err() != nil {
		before = &recipes.Error{Op: "unlock", Path: h.Path(), Err: context.Cause(h.Context())}
	}
	if h.Session().Context().Err() != nil {
		return before // the znode goes with the session
	}
	return join(before, h.Release(ctx))
}

// join is errors.Join that leaves one error as it is.
func join(a, b error) error {
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	return errors.Join(a, b)
}

// lost reports whether what was held, or waited for, is gone, though its caller still wants it.
func isLost(err error) bool {
	return errors.Is(err, recipes.ErrSessionLost) || errors.Is(err, recipes.ErrNotHeld)
}

// onlyUnknown reports whether err says no more than that something goes on in the background.
func onlyUnknown(err error) bool { return errors.Is(err, recipes.ErrOutcomeUnknown) && !isLost(err) }
