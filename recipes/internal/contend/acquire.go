package contend

import (
	"context"
	"errors"

	"github.com/gozkd/gozkd/recipes"
)

// Acquire takes a place in the line of dir and waits for its turn. If the place is lost meanwhile,
// with the session or because somebody deleted the znode, Acquire joins again at the end of the
// line. The call fails when ctx ends, when the server refuses, or when the Client's RetryPolicy
// stops.
func Acquire(ctx context.Context, c *recipes.Client, dir, name string, data []byte, rule Rule) (*recipes.Hold, error) {
	for {
		p, err := Join(ctx, c, dir, name, data)
		var held *recipes.Hold
		if err == nil {
			held, err = p.Await(ctx, rule)
		}
		if err == nil {
			return held, nil
		}
		if ctx.Err() != nil || !IsLost(err) {
			return nil, err
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

// WithCleanup returns err joined with the error of the cleanup after err. A cleanup that continues
// in the background does not count as an error.
func WithCleanup(err, cleanup error) error {
	if cleanup == nil || errors.Is(cleanup, recipes.ErrOutcomeUnknown) {
		return err
	}
	return errors.Join(err, cleanup)
}
