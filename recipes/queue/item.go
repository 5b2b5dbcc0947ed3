package queue

import (
	"context"
	"errors"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/backoff"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/calls"
	"github.com/gozkd/gozkd/recipes/internal/exactlyonce"
)

// Item is a locked item. An Item stays in the queue until Done, and becomes available to others
// with Release, or when the session of its holder ends. It then keeps its place in the queue. Done
// or Release must be called; after Done, Release does nothing. If its ctx ends first, Release
// continues in the background. Safe for concurrent use.
type Item struct {
	Message
	*recipes.Hold
	engine *engine
	marker string // an ephemeral of the lock's session, with a name that is never reused

	turn        chan struct{} // capacity 1: holds a value while no goroutine uses the fields below
	doneUnknown bool          // the answer to a Done was lost
	unlocked    bool          // the lock is gone, whether this Item or another client deleted it
}

// Done removes the item from the queue and releases the lock. After recipes.ErrNotHeld the item may
// be delivered again, to others. After recipes.ErrOutcomeUnknown Done may be called again.
func (i *Item) Done(ctx context.Context) error {
	err := i.done(ctx)
	if errors.Is(err, recipes.ErrNotHeld) { // the lock still exists if only the connection was lost
		err = calls.WithCleanup(err, i.Release(ctx))
	}
	return err
}

func (i *Item) done(ctx context.Context) error {
	e, s := i.engine, i.Hold.Session()
	if err := calls.Await(ctx, "done", e.path, i.turn); err != nil {
		return err
	}
	defer func() { i.turn <- struct{}{} }()
	// Not within the hold, which ends as soon as the deletion of the lock is seen. That may be
	// before the answer shows that this call deleted the lock.
	in, cancel := s.Within(ctx)
	defer cancel()
	for {
		if i.Context().Err() != nil && (!i.doneUnknown || s.Context().Err() != nil) {
			return i.notHeld()
		}
		results, err := e.client.Multi(in, i.Guard(
			client.DeleteOp(e.child(i.Name), -1),
			client.DeleteOp(i.Path(), -1))...)
		switch {
		case err == nil:
			i.endHold()
			i.doneUnknown = false
			return nil
		case errors.Is(err, recipes.ErrOutcomeUnknown):
			i.doneUnknown = true
			// the multi may still be in progress
			if ctx.Err() != nil || e.client.Sync(in, i.Path()) != nil {
				return err
			}
			continue
		case len(results) == 0 && s.Context().Err() != nil && ctx.Err() == nil:
			return i.notHeld()
		case len(results) == 0:
			return err
		case errors.Is(results[0].Err, proto.ErrNoNode) && i.doneUnknown && s.Context().Err() == nil:
			i.endHold() // while its session lives, only this Done deletes the lock
			i.doneUnknown = false
			return nil
		case errors.Is(results[0].Err, proto.ErrNoNode):
			i.endHold()
			return i.notHeld()
		// the marker was deleted; the lock may be another holder's
		case errors.Is(results[1].Err, proto.ErrNoNode):
			i.endHold()
			// Ends with the server's answer or with s. Client.Close ends s and waits.
			_ = e.client.Background(ctx, func(ctx context.Context) { e.dropLock(ctx, s, i.Name) })
			return i.notHeld()
		case errors.Is(err, proto.ErrNoNode): // somebody has removed the item, as Done should
			i.endHold()
			return calls.Finish(ctx, e.client, "done", e.path, func(ctx context.Context) error { return e.unlock(ctx, s, i.Name, i.marker, i.Token()) })
		}
		return err
	}
}

func (i *Item) endHold() {
	i.unlocked = true
	i.Hold.End()
}

func (i *Item) notHeld() error {
	return &recipes.Error{Op: "done", Path: i.Path(), Err: recipes.ErrNotHeld, Unknown: i.doneUnknown}
}

// giveBack deletes the lock if this Item still has it. It is the release function of the Hold.
func (i *Item) giveBack(ctx context.Context, lost bool) error {
	e, s := i.engine, i.Hold.Session()
	if s.Context().Err() != nil {
		return nil
	}
	return calls.Finish(ctx, e.client, "release", e.path, func(ctx context.Context) error {
		if err := calls.Await(ctx, "release", e.path, i.turn); err != nil {
			return err
		}
		defer func() { i.turn <- struct{}{} }()
		if i.unlocked {
			return nil
		}
		if lost { // the lock may be another holder's
			if locked, _ := e.isLocked(ctx, s, i.Name, i.Token()); !locked {
				return nil
			}
		}
		err := e.unlock(ctx, s, i.Name, i.marker, i.Token())
		i.unlocked = err == nil
		return err
	})
}

// unlock deletes the lock of session s on an item, at most once: the next holder's lock has the
// same name. marker must be a marker of s. If the RetryPolicy stops, unlock tries again, unless the
// lock that was created at the zxid token is gone.
func (e *engine) unlock(ctx context.Context, s *recipes.Session, name, marker string, token int64) error {
	in, cancel := s.Within(ctx)
	defer cancel()
	for {
		marked, err := e.deleteLock(in, name, marker)
		if s.Context().Err() != nil {
			return nil // the server deletes the lock with its session
		}
		if !marked {
			e.dropLock(ctx, s, name)
		}
		unknown := errors.Is(err, recipes.ErrOutcomeUnknown)
		if err == nil || !unknown && !repeatable(ctx, err) && !errors.Is(err, recipes.ErrHungUp) {
			return err
		}
		if unknown {
			if locked, lookErr := e.isLocked(ctx, s, name, token); lookErr != nil {
				return err
			} else if !locked {
				return nil
			}
		}
		backoff.Sleep(in, dropPause)
	}
}

// isLocked reports whether the lock of s that was created at the zxid token exists. It tries until
// the server answers or ctx ends; after the end of s the result is false.
func (e *engine) isLocked(ctx context.Context, s *recipes.Session, name string, token int64) (locked bool, err error) {
	in, cancel := s.Within(ctx)
	defer cancel()
	done := backoff.Retry(in, func() bool {
		if err = e.client.Sync(in, e.lock(name)); err == nil {
			var stat *proto.Stat
			stat, err = e.client.Exists(in, e.lock(name))
			locked = stat != nil && int64(stat.Czxid) == token
		}
		return err == nil || recipes.Refused(err)
	})
	if !done {
		err = ctx.Err()
	}
	return locked, err
}

// repeatable reports whether a write was not applied and may succeed later, while ctx is alive: the
// RetryPolicy stopped, or the session ended.
func repeatable(ctx context.Context, err error) bool {
	return ctx.Err() == nil && !errors.Is(err, recipes.ErrOutcomeUnknown) && !errors.Is(err, recipes.ErrClosed) && !recipes.Refused(err)
}

// deleteLock deletes the lock on an item if marker exists, and reports whether marker existed. The
// marker belongs to the lock's session. If that session ends before the request is sent, the
// request is sent in the next session, where the lock may be another holder's.
func (e *engine) deleteLock(ctx context.Context, name, marker string) (marked bool, err error) {
	r, err := e.putWriter.Write(ctx, client.CheckOp(marker, -1), client.DeleteOp(e.lock(name), -1))
	if errors.Is(err, proto.ErrNoNode) {
		return exactlyonce.FailedAt(r.Ops) > 0, nil // the marker or the lock is gone
	}
	return true, err
}

// dropLock deletes the lock on an item if s owns the lock, and retries while disconnected.
func (e *engine) dropLock(ctx context.Context, s *recipes.Session, name string) {
	in, cancel := s.Within(ctx)
	defer cancel()
	for in.Err() == nil {
		err := e.client.Sync(in, e.lock(name))
		if err == nil {
			var data []byte
			var stat *proto.Stat
			data, stat, err = e.client.Get(in, e.lock(name))
			if err == nil && (int64(stat.EphemeralOwner) != s.ID() || string(data) != e.id) {
				return
			}
		}
		var r exactlyonce.Result
		if err == nil {
			r, err = e.write(in, e.putWriter) // to get its marker
		}
		marked := false
		if err == nil && r.Session == s {
			marked, err = e.deleteLock(in, name, r.Marker)
		}
		if marked && err == nil || recipes.Refused(err) && !errors.Is(err, recipes.ErrHungUp) {
			return
		}
		backoff.Sleep(in, dropPause)
	}
}

// dropPause is the pause between attempts to delete an abandoned lock.
const dropPause = time.Second

// Handle waits for an item, locks the item, and calls f. The context of f also ends when the item
// is no longer held. If f returns nil, Handle calls Done; if f fails or panics, Handle calls
// Release. The error joins that of f and that of Done or Release; a Release that continues in the
// background is no error. An item that cannot be decoded is released without a call of f, with
// recipes.ErrFormat, and stays first in the queue until Take or TakeLocked removes it.
func (e *engine) Handle(ctx context.Context, f func(ctx context.Context, item *Item) error) (err error) {
	i, err := e.TakeLocked(ctx)
	if i == nil {
		return err
	}
	in, cancel := i.Within(ctx)
	defer cancel()
	returned := false
	defer func() {
		if !returned || err != nil {
			err = calls.WithCleanup(err, i.Release(ctx)) // continues in the background if ctx ends first
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
