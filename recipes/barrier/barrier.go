package barrier

import (
	"context"
	"errors"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/calls"
	"github.com/gozkd/gozkd/recipes/internal/contend"
)

// Barrier blocks the callers of Wait while the barrier is set, which is while the znode at its path
// exists. Any client may set and remove a barrier. The znode is persistent: a barrier stays set
// when the session that set it ends. Safe for concurrent use.
type Barrier struct {
	client *recipes.Client
	path   string
}

// New returns the barrier at path.
func New(c *recipes.Client, path string) *Barrier { return &Barrier{c, path} }

// Set sets the barrier. A barrier that is already set is no error.
func (b *Barrier) Set(ctx context.Context) error {
	// Client.Create would delete the znode again if ctx ends meanwhile, although others may rely on
	// the barrier by then.
	for {
		_, err := b.client.Multi(ctx, client.CreateOp(b.path, nil, client.CreateOptions{}))
		switch {
		case errors.Is(err, proto.ErrNodeExists):
			return nil
		case errors.Is(err, proto.ErrNoNode):
			if err := b.client.Ensure(ctx, proto.ParentPath(b.path)); err != nil {
				return err
			}
		case !repeatable(ctx, err):
			return err
		}
	}
}

// Remove removes the barrier, and the callers of Wait proceed. A missing barrier is no error. If an
// answer was lost and the barrier is set afterwards, somebody may have set it again: then the
// barrier stays, and the error is recipes.ErrOutcomeUnknown.
func (b *Barrier) Remove(ctx context.Context) error {
	return contend.IgnoreMissing(b.client.Delete(ctx, b.path, -1))
}

// Wait waits until the barrier is not set, which may be at once.
func (b *Barrier) Wait(ctx context.Context) error {
	for {
		s, err := b.client.AwaitSession(ctx)
		if err != nil {
			return err
		}
		open, err := b.wait(ctx, s)
		if open || err != nil {
			return err
		}
	}
}

// wait is Wait within one session. If open is false and err is nil, the caller must try again.
func (b *Barrier) wait(ctx context.Context, s *recipes.Session) (open bool, err error) {
	set, err := b.isSet(ctx)
	if err != nil || !set {
		return !set, err
	}
	// In this session the server now knows at least what the leader knew in isSet, so its answers
	// describe a later moment.
	stat, watch, err := b.client.ExistsW(ctx, b.path)
	if err != nil || s.Context().Err() != nil {
		return false, err
	}
	if stat == nil {
		return true, nil
	}
	select {
	case e := <-watch:
		return e.Type == proto.EventDeleted, nil
	case <-s.Context().Done():
		return false, nil
	case <-ctx.Done():
		return false, &recipes.Error{Op: "wait at barrier", Path: b.path, Err: calls.ContextError(ctx)}
	}
}

// isSet asks the leader, because the Client's server may not know yet that the barrier was set. A
// check changes nothing, so the request may be repeated after a lost answer.
func (b *Barrier) isSet(ctx context.Context) (bool, error) {
	for {
		_, err := b.client.Multi(ctx, client.CheckOp(b.path, -1))
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, proto.ErrNoNode):
			return false, nil
		case !errors.Is(err, recipes.ErrOutcomeUnknown):
			return false, err
		case ctx.Err() != nil: // a lost answer to a check leaves nothing unknown
			return false, &recipes.Error{Op: "wait at barrier", Path: b.path, Err: calls.ContextError(ctx)}
		}
	}
}

// repeatable reports whether an answer was lost while ctx is alive.
func repeatable(ctx context.Context, err error) bool {
	return errors.Is(err, recipes.ErrOutcomeUnknown) && ctx.Err() == nil
}
