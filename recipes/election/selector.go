package election

import (
	"context"
	"errors"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/contend"
)

// Selector calls a function while it leads: Curator's LeaderSelector. Safe for concurrent use: each call stands on its own.
type Selector struct{ candidate }

// NewSelector returns a selector for the election at path. id says to others who it is. A kazoo Election shares it whose Lock is told
// extra_lock_patterns=["lock-"], but not with Curator.
func NewSelector(c *recipes.Client, path, id string) *Selector {
	return &Selector{candidate{c, path, selectorName, id}}
}

// NewKazooSelector returns a selector whose election kazoo's Election shares as it is. Selectors of NewSelector share it too; Curator does not.
func NewKazooSelector(c *recipes.Client, path, id string) *Selector {
	return &Selector{candidate{c, path, kazooName, id}}
}

// LeadFunc is called by who leads, and leads until it returns.
//
//	ctx    has the values of the caller's, and ends with that and when it leads no more
//	held   its leadership
type LeadFunc func(ctx context.Context, held *recipes.Hold) error

// Lead stands, waits until it leads, calls f, and when f has returned, resigns, also when f panics. If it loses its place while it waits, it
// stands again.
//
// The error is that of f, with recipes.ErrSessionLost or recipes.ErrNotHeld if leadership was lost before f returned; or says why it could
// not lead, and f was not called. That resigning goes on in the background is no error.
func (s *Selector) Lead(ctx context.Context, f LeadFunc) error {
	held, err := contend.Acquire(ctx, s.client, s.path, s.name, []byte(s.id), contend.Exclusive)
	if err != nil {
		return err
	}
	_, err = s.lead(ctx, held, f)
	return err
}

// Run leads again and again, with f called once in each leadership, until ctx ends, f returns an error without having lost leadership, or the
// server refuses; the error says which. It stands again after f has returned nil, after leadership was lost, and after long troubles
// of the connection, but never before f has returned.
func (s *Selector) Run(ctx context.Context, f LeadFunc) error {
	for {
		held, err := contend.Acquire(ctx, s.client, s.path, s.name, []byte(s.id), contend.Exclusive)
		switch {
		case err == nil:
			// f's error may be about something else that was lost.
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
			return errors.Join(err, &recipes.Error{Op: "stand", Path: s.path, Err: contend.ContextError(ctx)})
		}
	}
}

// lead calls f while held lasts, and resigns. It reports whether leadership was lost before.
func (s *Selector) lead(ctx context.Context, held *recipes.Hold, f LeadFunc) (lost bool, err error) {
	in, cancel := held.Within(ctx)
	defer func() {
		cancel()
		gone, left := s.resign(ctx, held)
		lost, err = gone != nil, errors.Join(err, gone, left)
	}()
	return false, f(in, held)
}

// resign gives leadership up. It returns how it was lost before, and why it could not be given up.
func (s *Selector) resign(ctx context.Context, held *recipes.Hold) (lost, err error) {
	if held.Context().Err() != nil {
		lost = &recipes.Error{Op: "lead", Path: held.Path(), Err: context.Cause(held.Context())}
	}
	if held.Session().Context().Err() != nil {
		return lost, nil // the znode goes with the session
	}
	if err := held.Release(ctx); !errors.Is(err, recipes.ErrOutcomeUnknown) {
		return lost, err
	}
	return lost, nil
}
