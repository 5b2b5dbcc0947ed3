package election

import (
	"context"
	"errors"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/calls"
	"github.com/gozkd/gozkd/recipes/internal/contend"
	"github.com/gozkd/gozkd/recipes/internal/holding"
)

// Selector calls a function while leading: Curator's LeaderSelector. Safe for concurrent use: each
// call of Lead or Run is a candidate of its own.
type Selector struct{ candidate }

// NewSelector returns a selector for the election at path. id identifies the candidate to others.
// kazoo's Election shares the election if its Lock is created with extra_lock_patterns=["lock-"],
// but then not with Curator.
func NewSelector(c *recipes.Client, path, id string) *Selector {
	return &Selector{candidate{c, path, selectorName, id}}
}

// NewKazooSelector returns a selector whose election kazoo's Election shares without further
// settings. So do Selectors of NewSelector; Curator does not.
func NewKazooSelector(c *recipes.Client, path, id string) *Selector {
	return &Selector{candidate{c, path, kazooName, id}}
}

// Lead joins the election, waits for the leadership, calls f, and resigns when f has returned or
// panicked. The context of f has the values of ctx, and ends with ctx or with the leadership, which
// is held. If Lead loses its place while waiting, Lead joins again at the end of the line.
//
// The error is that of f, joined with recipes.ErrSessionLost or recipes.ErrNotHeld if the
// leadership was lost before f returned. If f was not called, the error says why. A resignation
// that continues in the background is no error.
func (s *Selector) Lead(ctx context.Context, f func(ctx context.Context, held *recipes.Hold) error) error {
	held, err := contend.Acquire(ctx, s.client, s.path, s.name, []byte(s.id), contend.Exclusive)
	if err != nil {
		return err
	}
	_, err = s.lead(ctx, held, f)
	return err
}

// Run leads again and again, with a call of f in each leadership. When f has returned nil, or has
// returned after its leadership was lost, Run joins again. Run returns when ctx ends, when the
// server refuses, or when f returns an error while its leadership lasts.
func (s *Selector) Run(ctx context.Context, f func(ctx context.Context, held *recipes.Hold) error) error {
	for {
		held, err := contend.Acquire(ctx, s.client, s.path, s.name, []byte(s.id), contend.Exclusive)
		switch {
		case err == nil:
			// Use lead's result: f's error may wrap the loss of something else.
			var lost bool
			if lost, err = s.lead(ctx, held, f); err != nil && !lost {
				return err
			}
		case isFinal(err):
			return err
		default:
			pauseBeforeRetry(ctx, err)
		}
		if ctx.Err() != nil {
			return errors.Join(err, &recipes.Error{Op: "stand", Path: s.path, Err: calls.ContextError(ctx)})
		}
	}
}

// lead calls f while held lasts, and resigns. lost: the leadership ended before f.
func (s *Selector) lead(ctx context.Context, held *recipes.Hold, f func(ctx context.Context, held *recipes.Hold) error) (lost bool, err error) {
	return holding.With(ctx, held, "lead", func(ctx context.Context) error { return f(ctx, held) })
}
