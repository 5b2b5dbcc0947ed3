// Package cleanup removes what a call that failed has left, and says what that adds to its error.
package cleanup

import (
	"context"
	"errors"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/parallel"
)

// Join returns err joined with the error of the cleanup after err. A cleanup that continues
// in the background, or finds that there is nothing left, does not count as an error.
func Join(err, cleanup error) error {
	if cleanup == nil || errors.Is(cleanup, recipes.ErrOutcomeUnknown) || recipes.IsLost(cleanup) {
		return err
	}
	return errors.Join(err, cleanup)
}

// Undo deletes ephemerals of s because of err, and returns Join.
func Undo(ctx context.Context, c *recipes.Client, s *recipes.Session, err error, paths ...string) error {
	if s.Context().Err() != nil {
		return err // the server deletes them before the Client has another session
	}
	return Join(err, parallel.Each(len(paths), func(i int) error { return c.DeleteGuaranteed(ctx, paths[i]) }))
}

// Continues reports whether err only says that something continues in the background.
func Continues(err error) bool {
	return errors.Is(err, recipes.ErrOutcomeUnknown) && !recipes.IsLost(err)
}
