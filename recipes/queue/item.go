package queue

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/author"
	"github.com/gozkd/gozkd/recipes/internal/backoff"
	"github.com/gozkd/gozkd/recipes/internal/contend"
	"github.com/gozkd/gozkd/recipes/internal/exactlyonce"
)

// Item is a locked item. An Item stays in the queue until Done, and becomes available to others
// with Return, or when the session of its holder ends. Done or Return must be called. Safe for
// concurrent use.
type Item struct {
	Message
	engine *engine
	held   *recipes.Hold
	marker string // an ephemeral of the lock's session, with a name that is never reused

	mu          sync.Mutex // held during Done and Return
	doneUnknown bool       // the answer to a Done was lost
}

// Context ends when the item is no longer held, or may not be; see recipes.Hold.Context.
func (i *Item) Context() context.Context { return i.held.Context() }

// Token exceeds the token of every earlier holder of the item; see recipes.Hold.Token.
func (i *Item) Token() int64 { return i.held.Token() }

// Guard returns ops preceded by two checks that make the whole multi fail if the item is no longer
// held. The multi's first two results are those of the checks.
func (i *Item) Guard(ops ...any) []any { return i.held.Guard(i.withMarkerCheck(ops)...) }

// withMarkerCheck returns ops preceded by a check that the lock is still this holder's. The lock's
// name does not tell, because the next holder's lock has the same name.
func (i *Item) withMarkerCheck(ops []any) []any {
	return append([]any{&zk.CheckVersionRequest{Path: i.marker, Version: -1}}, ops...)
}

// Commit applies all ops if the item is still held, and none otherwise; see recipes.Hold.Commit.
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

// Done removes the item from the queue and releases the lock. After recipes.ErrNotHeld the item may
// be delivered again, to another consumer. After recipes.ErrOutcomeUnknown Done may be called
// again.
func (i *Item) Done(ctx context.Context) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	e, s := i.engine, i.held.Session()
	// Not within the hold, which ends as soon as the deletion of the lock is seen. That may be
	// before the answer shows that this call deleted the lock.
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
			// the multi may still be in progress
			if ctx.Err() != nil || e.client.Sync(in, i.held.Path()) != nil {
				return err
			}
			continue
		case len(results) == 0 && s.Context().Err() != nil && ctx.Err() == nil:
			return i.notHeld()
		case len(results) == 0:
			return err
		case errors.Is(results[0].Error, zk.ErrNoNode) && i.doneUnknown && s.Context().Err() == nil:
			i.held.End() // while its session lives, only this Done deletes the lock
			i.doneUnknown = false
			return nil
		case errors.Is(results[0].Error, zk.ErrNoNode):
			i.held.End()
			return i.notHeld()
		// the marker was deleted; the lock may be another holder's
		case errors.Is(results[1].Error, zk.ErrNoNode):
			i.held.End()
			// Ends with the server's answer or with s. Client.Close ends s and waits.
			_ = author.Of(e.client).Background(ctx, func(ctx context.Context) { e.dropLock(ctx, s, i.Name) })
			return i.notHeld()
		case errors.Is(err, zk.ErrNoNode): // somebody has removed the item, as Done should
			return i.release(ctx)
		}
		return err
	}
}

func (i *Item) notHeld() error {
	return &recipes.Error{Op: "done", Path: i.held.Path(), Err: recipes.ErrNotHeld, Unknown: i.doneUnknown}
}

// Return releases the item, which keeps its place in the queue. If ctx ends first, the release
// continues in the background, and the error's Unknown is set. After Done, Return does nothing.
func (i *Item) Return(ctx context.Context) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.held.Context().Err() != nil {
		return nil
	}
	return i.release(ctx)
}

// release ends the hold and then deletes the lock.
func (i *Item) release(ctx context.Context) error {
	e, s := i.engine, i.held.Session()
	i.held.End()
	return contend.Finish(ctx, e.client, "return", e.path, func(ctx context.Context) error { return e.unlock(ctx, s, i.Name, i.marker) })
}

// unlock deletes the lock of session s on an item, at most once: the next holder's lock has the
// same name. marker must be a marker of s.
func (e *engine) unlock(ctx context.Context, s *recipes.Session, name, marker string) error {
	in, cancel := s.Within(ctx)
	defer cancel()
	marked, err := e.deleteLock(in, name, marker)
	if s.Context().Err() != nil {
		return nil // the server deletes the lock with its session
	}
	if !marked {
		e.dropLock(ctx, s, name)
	}
	return err
}

// deleteLock deletes the lock on an item if marker exists, and reports whether marker existed. The
// marker belongs to the lock's session. If that session ends before the request is sent, the
// request is sent in the next session, where the lock may be another holder's.
func (e *engine) deleteLock(ctx context.Context, name, marker string) (marked bool, err error) {
	r, err := e.putWriter.Write(ctx, &zk.CheckVersionRequest{Path: marker, Version: -1}, &zk.DeleteRequest{Path: e.lock(name), Version: -1})
	if errors.Is(err, zk.ErrNoNode) {
		return exactlyonce.FailedAt(r.Ops) > 0, nil // the marker or the lock is gone
	}
	return true, err
}

// dropLock deletes the lock on an item if s owns the lock, and retries while the connection is
// lost.
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
			r, err = e.putWriter.Write(in) // to get its marker
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

// dropPause is the pause between attempts to delete an abandoned lock.
const dropPause = time.Second

// Handle waits for an item, locks the item, and calls f. The context of f also ends when the item
// is no longer held. If f returns nil, Handle calls Done; if f fails or panics, Handle calls
// Return. The error joins that of f and that of Done or Return. An item with recipes.ErrFormat is returned
// without a call of f, and stays the first in the queue until removed with Take or TakeLocked.
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
