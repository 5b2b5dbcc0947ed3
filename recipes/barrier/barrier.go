package barrier

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/contend"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// Barrier holds back all who wait at it while it is set, that is, while there is a znode at its path. Whoever may sets it and removes it.
// Safe for concurrent use.
type Barrier struct {
	client *recipes.Client
	path   string
}

// New returns the barrier at path. It asks the server nothing.
func New(c *recipes.Client, path string) *Barrier { return &Barrier{c, path} }

// Set sets the barrier. It is no error if it is set already.
func (b *Barrier) Set(ctx context.Context) error {
	// Not with Client.Create: if ctx ends meanwhile, that takes back what it made, and somebody else may count on it by then.
	for {
		_, err := b.client.Multi(ctx, &zk.CreateRequest{Path: b.path})
		switch {
		case errors.Is(err, zk.ErrNodeExists):
			return nil
		case errors.Is(err, zk.ErrNoNode):
			if err := b.client.Ensure(ctx, znodepath.Parent(b.path)); err != nil {
				return err
			}
		case !repeatable(ctx, err):
			return err
		}
	}
}

// Remove opens the barrier: who waits goes on. It is no error if it was not set. If an answer is lost it is done again, which also removes
// what somebody sets in that moment.
func (b *Barrier) Remove(ctx context.Context) error {
	err := b.client.Delete(ctx, b.path, -1)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}

// Wait waits until the barrier is not set; if it never was, that is at once.
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

// wait is Wait in one session. False and no error means that it is to be done again.
func (b *Barrier) wait(ctx context.Context, s *recipes.Session) (open bool, err error) {
	set, err := b.isSet(ctx)
	if err != nil || !set {
		return !set, err
	}
	// From here on the server that answers knows at least what the leader knew in isSet, and what it tells happened after that, for as
	// long as the session lives.
	stat, fires, err := b.client.ExistsW(ctx, b.path)
	if err != nil || s.Context().Err() != nil {
		return false, err
	}
	if stat == nil {
		return true, nil
	}
	select {
	case e := <-fires:
		return e.Type == zk.EventNodeDeleted, nil
	case <-s.Context().Done():
		return false, nil
	case <-ctx.Done():
		return false, &recipes.Error{Op: "wait at barrier", Path: b.path, Err: contend.ContextError(ctx)}
	}
}

// isSet asks the leader: a read is answered by the server that the client is connected to, which may not know yet what somebody has set. A
// check changes nothing, so it may be asked again when the answer is lost.
func (b *Barrier) isSet(ctx context.Context) (bool, error) {
	for {
		_, err := b.client.Multi(ctx, &zk.CheckVersionRequest{Path: b.path, Version: -1})
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, zk.ErrNoNode):
			return false, nil
		case !repeatable(ctx, err):
			return false, err
		}
	}
}

// repeatable reports whether an answer was lost, and somebody still waits for one.
func repeatable(ctx context.Context, err error) bool {
	return errors.Is(err, recipes.ErrOutcomeUnknown) && ctx.Err() == nil
}
