// Package holding runs functions while something is held.
package holding

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/calls"
)

// With runs f while held lasts and then releases held, also when f panics. lost reports whether
// held was lost before f returned, which the error says as one of op, joined with the error of f. A
// release that continues in the background is no error.
func With(ctx context.Context, held *recipes.Hold, op string, f func(context.Context) error) (lost bool, err error) {
	in, cancel := held.Within(ctx)
	defer func() {
		cancel()
		gone, unfinished := Release(ctx, held, op)
		lost = gone != nil
		if e := errors.Join(gone, calls.WithCleanup(nil, unfinished)); e != nil {
			err = errors.Join(err, e)
		}
	}()
	return false, f(in)
}

// While runs f between start and the Close of what start returns, also if f panics. f gets ctx
// itself: what start returns is restored after a loss, which is no reason to stop f.
func While[C io.Closer](ctx context.Context, start func() (C, error), f func(context.Context) error) (err error) {
	if err := CheckFunc(f == nil); err != nil {
		return err
	}
	c, err := start()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	return f(ctx)
}

// Release releases h. lost is op's error if h was lost before; err says why releasing failed.
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
