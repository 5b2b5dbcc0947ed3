// Package calls has how a call waits: until its ctx ends, for what goes on in the background, for
// many requests at a time, and again after a loss; and what it removes when it has failed.
package calls

import (
	"context"
	"errors"
	"fmt"

	"github.com/gozkd/gozkd/internal/parallel"
	"github.com/gozkd/gozkd/recipes"
)

// Again calls try until ctx ends, or try succeeds or fails by no loss; see recipes.IsLost.
func Again[T any](ctx context.Context, try func() (T, error)) (T, error) {
	for {
		v, err := try()
		if err == nil || ctx.Err() != nil || !recipes.IsLost(err) {
			return v, err
		}
	}
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

const maxConcurrent = 64

// Each calls f for 0 to n-1, maxConcurrent at a time, and joins the errors.
func Each(n int, f func(i int) error) error {
	return errors.Join(parallel.Each(n, maxConcurrent, f)...)
}

// WithCleanup returns err joined with the error of the cleanup after err. A cleanup that continues
// in the background, or finds that there is nothing left, does not count as an error.
func WithCleanup(err, cleanup error) error {
	if cleanup == nil || errors.Is(cleanup, recipes.ErrOutcomeUnknown) || recipes.IsLost(cleanup) {
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

// Continues reports whether err only says that something continues in the background.
func Continues(err error) bool {
	return errors.Is(err, recipes.ErrOutcomeUnknown) && !recipes.IsLost(err)
}
