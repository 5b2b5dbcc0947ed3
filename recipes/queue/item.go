package queue

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/backoff"
	"github.com/gozkd/gozkd/recipes/internal/exactlyonce"
)

// Item is an item that is locked: it stays in the queue until Done, and comes back when its taker's session ends, or with Return. One of
// these must be called. Safe for concurrent use.
type Item struct {
	Message
	engine *engine
	held   *recipes.Hold
	marker string // an ephemeral of the same session with a name that is not used twice, as that of the lock is

	mu          sync.Mutex // one Done at a time
	doneUnknown bool       // a Done may have been carried out
}

// Context ends when the item is not held any more or may not be; see recipes.Hold.Context.
func (i *Item) Context() context.Context { return i.held.Context() }

// Token is greater than that of all who held the item before; see recipes.Hold.Token.
func (i *Item) Token() int64 { return i.held.Token() }

// Guard returns ops with checks in front that fail the whole multi if the item is not held any more. The first two results of the multi are
// those of the checks.
func (i *Item) Guard(ops ...any) []any { return i.held.Guard(i.withMarkerCheck(ops)...) }

// guarded is ops after the check of what the lock's own name can't tell: that it is still this holder's.
func (i *Item) withMarkerCheck(ops []any) []any {
	return append([]any{&zk.CheckVersionRequest{Path: i.marker, Version: -1}}, ops...)
}

// Commit carries out all ops if the item is still held, and else none; see recipes.Hold.Commit.
func (i *Item) Commit(ctx context.Context, ops ...any) ([]zk.MultiResponse, error) {
	results, err := i.held.Commit(ctx, i.withMarkerCheck(ops)...)
	if len(results) == 0 {
		return nil, err
	}
	if errors.Is(results[0].Error, zk.ErrNoNode) {
		return nil, &recipes.Error{Op: "commit", Path: i.held.Path(), Err: recipes.ErrNotHeld}
	}
	return results[1:], err
}

// Done takes the item out of the queue, and lets it go. With recipes.ErrNotHeld it may come again, to another; with
// recipes.ErrOutcomeUnknown Done may be called once more.
func (i *Item) Done(ctx context.Context) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	e, s := i.engine, i.held.Session()
	// Not what is held ends it: who looks may see that the lock is gone before the answer says that it was this call that did it.
	in, cancel := s.Within(ctx)
	defer cancel()
	for {
		if i.held.Context().Err() != nil && (!i.doneUnknown || s.Context().Err() != nil) {
			return i.notHeld()
		}
		results, err := e.client.Multi(in, i.Guard(
			&zk.DeleteRequest{Path: e.child(i.Name), Version: -1},
			&zk.DeleteRequest{Path: i.held.Path(), Version: -1})...)
		switch {
		case err == nil:
			i.held.End()
			i.doneUnknown = false
			return nil
		case errors.Is(err, recipes.ErrOutcomeUnknown):
			i.doneUnknown = true
			if ctx.Err() != nil || e.client.Sync(in, i.held.Path()) != nil { // it may still be under way
				return err
			}
			continue
		case len(results) == 0 && s.Context().Err() != nil && ctx.Err() == nil:
			return i.notHeld()
		case len(results) == 0:
			return err
		case errors.Is(results[0].Error, zk.ErrNoNode) && i.doneUnknown && s.Context().Err() == nil:
			i.held.End() // nobody else deletes a lock whose session lives
			i.doneUnknown = false
			return nil
		case errors.Is(results[0].Error, zk.ErrNoNode):
			i.held.End()
			return i.notHeld()
		case errors.Is(results[1].Error, zk.ErrNoNode): // somebody has deleted the marker, and the lock may be another's
			i.held.End()
			// Ends with the server's answer or with s; Client.Close waits for it, after which there is no session either.
			_ = e.client.Background(ctx, func(ctx context.Context) { e.dropLock(ctx, s, i.Name) })
			return i.notHeld()
		case errors.Is(err, zk.ErrNoNode): // somebody has removed the item, which is what Done is for
			return i.release(ctx)
		}
		return err
	}
}

func (i *Item) notHeld() error {
	return &recipes.Error{Op: "done", Path: i.held.Path(), Err: recipes.ErrNotHeld, Unknown: i.doneUnknown}
}

// Return lets the item go, for others to take: it is where it was in the queue. If that can't be done before ctx ends, it goes on in the
// background, and the error's Unknown is set. After Done it does nothing.
func (i *Item) Return(ctx context.Context) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.held.Context().Err() != nil {
		return nil
	}
	return i.release(ctx)
}

// letGo ends what is held, and then deletes the lock.
func (i *Item) release(ctx context.Context) error {
	e, s := i.engine, i.held.Session()
	i.held.End()
	done := make(chan error, 1) // who answers does not wait
	if err := e.client.Background(ctx, func(ctx context.Context) { done <- e.unlock(ctx, s, i.Name, i.marker) }); err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return e.contextError(ctx, "return", true)
	}
}

// unlock deletes the lock of s on an item, once: the next holder's lock has the same name. marker is one of s.
func (e *engine) unlock(ctx context.Context, s *recipes.Session, name, marker string) error {
	in, cancel := s.Within(ctx)
	defer cancel()
	marked, err := e.deleteLock(in, name, marker)
	if s.Context().Err() != nil {
		return nil // it went with its session
	}
	if !marked {
		e.dropLock(ctx, s, name)
	}
	return err
}

// deleteLock deletes the lock on an item if the marker is there, and reports whether it was. The marker is of the lock's session: in the next, where
// the delete may be sent if it waits to be sent when the session ends, the lock may be another's.
func (e *engine) deleteLock(ctx context.Context, name, marker string) (marked bool, err error) {
	r, err := e.putWriter.Write(ctx, &zk.CheckVersionRequest{Path: marker, Version: -1}, &zk.DeleteRequest{Path: e.lock(name), Version: -1})
	if errors.Is(err, zk.ErrNoNode) {
		return exactlyonce.FailedAt(r.Ops) > 0, nil // somebody has deleted the marker, or the lock
	}
	return true, err
}

// dropLock deletes the lock on an item if it is of s, also when there is no connection for a while.
func (e *engine) dropLock(ctx context.Context, s *recipes.Session, name string) {
	in, cancel := s.Within(ctx)
	defer cancel()
	for in.Err() == nil {
		err := e.client.Sync(in, e.lock(name))
		if err == nil {
			var data []byte
			var stat *zk.Stat
			data, stat, err = e.client.Get(in, e.lock(name))
			if err == nil && (stat.EphemeralOwner != s.ID() || string(data) != e.id) {
				return
			}
		}
		var r exactlyonce.Result
		if err == nil {
			r, err = e.putWriter.Write(in) // for its marker
			if errors.Is(err, zk.ErrNoNode) {
				err = e.makePaths(in)
			}
		}
		marked := false
		if err == nil && r.Session == s {
			marked, err = e.deleteLock(in, name, r.Marker)
		}
		var refused *recipes.Error
		if marked && err == nil || errors.As(err, &refused) && refused.Refused() {
			return
		}
		backoff.Sleep(in, dropPause)
	}
}

// dropPause is between two tries to delete a lock that nobody waits for.
const dropPause = time.Second

// Handle waits for an item, locks it and calls f with it, and with a ctx that also ends when it is not held any more. If f returns nil the item
// is Done, else it is given back, also when f panics. The error is that of f joined with what went wrong then. With ErrFrame f is not called; the item
// comes again, and before all others, until somebody takes it out with Take or TakeLocked.
func (e *engine) Handle(ctx context.Context, f func(ctx context.Context, item *Item) error) (err error) {
	i, err := e.TakeLocked(ctx)
	if i == nil {
		return err
	}
	in, cancel := i.held.Within(ctx)
	defer cancel()
	returned := false
	defer func() {
		if !returned || err != nil {
			err = errors.Join(err, i.Return(context.WithoutCancel(ctx)))
		}
	}()
	if err == nil {
		err = f(in, i)
	}
	returned = true
	if err != nil {
		return err
	}
	return i.Done(ctx)
}
