package contend

import (
	"context"
	"errors"
	"fmt"

	"github.com/gozkd/gozkd/recipes"
)

// Acquire takes a place in the line of dir and waits for its turn. If the place is lost meanwhile,
// with the session or because somebody deleted the znode, Acquire joins again at the end of the
// line. The call fails when ctx ends, when the server refuses, or when the Client's RetryPolicy
// stops.
func Acquire(ctx context.Context, c *recipes.Client, dir, name string, data []byte, rule Rule) (*recipes.Hold, error) {
	return Again(ctx, func() (*recipes.Hold, error) {
		p, err := Join(ctx, c, dir, name, data)
		if err != nil {
			return nil, err
		}
		return p.Await(ctx, rule)
	})
}

// Again calls try until ctx ends, or try succeeds or fails for another reason than a loss; see
// IsLost.
func Again[T any](ctx context.Context, try func() (T, error)) (T, error) {
	for {
		v, err := try()
		if err == nil || ctx.Err() != nil || !IsLost(err) {
			return v, err
		}
	}
}

// TryAcquire takes a place in the line of dir. If its turn has not come, TryAcquire leaves the line
// and returns nil without an error.
func TryAcquire(ctx context.Context, c *recipes.Client, dir, name string, data []byte, rule Rule) (*recipes.Hold, error) {
	p, err := Join(ctx, c, dir, name, data)
	if err != nil {
		return nil, err
	}
	held, err := p.Try(ctx, rule)
	if err != nil || held != nil {
		return held, err
	}
	return nil, p.Leave(ctx)
}

// IsLost reports whether err says that a Hold or a place in line was lost: with its session, or
// because somebody deleted its znode.
func IsLost(err error) bool {
	return errors.Is(err, recipes.ErrSessionLost) || errors.Is(err, recipes.ErrNotHeld)
}

// Release releases h. lost is the error of op if h had been lost before; err says why releasing
// failed.
func Release(ctx context.Context, h *recipes.Hold, op string) (lost, err error) {
	if h.Context().Err() != nil {
		lost = &recipes.Error{Op: op, Path: h.Path(), Err: context.Cause(h.Context())}
	}
	return lost, h.Release(ctx)
}

// CheckFunc returns an error if the function of a With is nil, before anything is held.
func CheckFunc(isNil bool) error {
	if isNil {
		return fmt.Errorf("%w: the function is nil", recipes.ErrArgument)
	}
	return nil
}

// With runs f while held lasts and then releases held, also when f panics. The error joins that of
// f and the loss of held. A release that continues in the background is no error.
func With(ctx context.Context, held *recipes.Hold, f func(context.Context) error) (err error) {
	in, cancel := held.Within(ctx)
	defer func() {
		cancel()
		lost, cleanup := Release(ctx, held, "release")
		if e := errors.Join(lost, WithCleanup(nil, cleanup)); e != nil {
			err = errors.Join(err, e)
		}
	}()
	return f(in)
}

// OnlyUnknown reports whether err only says that something continues in the background.
func OnlyUnknown(err error) bool { return errors.Is(err, recipes.ErrOutcomeUnknown) && !IsLost(err) }

// WithCleanup returns err joined with the error of the cleanup after err. A cleanup that continues
// in the background, or finds that there is nothing left, does not count as an error.
func WithCleanup(err, cleanup error) error {
	if cleanup == nil || errors.Is(cleanup, recipes.ErrOutcomeUnknown) || IsLost(cleanup) {
		return err
	}
	return errors.Join(err, cleanup)
}

// Undo deletes ephemerals of s because of err, and returns WithCleanup.
func Undo(ctx context.Context, c *recipes.Client, s *recipes.Session, err error, paths ...string) error {
	if s.Context().Err() != nil {
		return err // the server deletes them before the Client has another session
	}
	return WithCleanup(err, Each(len(paths), func(i int) error { return c.DeleteGuaranteed(ctx, paths[i]) }))
}

// Await waits until something is received from fires, or fires is closed. If ctx ends first, the
// error names the operation and the path.
func Await[T any](ctx context.Context, op, path string, fires <-chan T) error {
	select {
	case <-fires:
		return nil
	case <-ctx.Done():
		return &recipes.Error{Op: op, Path: path, Err: ContextError(ctx)}
	}
}

// Finish runs f in the background of c, and waits for its result. If ctx ends first, f continues
// and the error's Unknown is set.
func Finish(ctx context.Context, c *recipes.Client, op, path string, f func(ctx context.Context) error) error {
	done := make(chan error, 1) // capacity 1: nobody may wait
	if err := c.Background(ctx, func(ctx context.Context) { done <- f(ctx) }); err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return &recipes.Error{Op: op, Path: path, Err: ContextError(ctx), Unknown: true}
	}
}

// Close calls f with a context that ends after the session timeout. A znode that f could not delete
// by then ends with the session, which a server that stands still ends later.
func Close(c *recipes.Client, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), c.Timeout())
	defer cancel()
	return f(ctx)
}

// ContextError returns an error that wraps both ctx.Err and the cause of ctx.
func ContextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
