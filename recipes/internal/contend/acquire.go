package contend

import (
	"context"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/calls"
)

// Acquire takes a place in the line of dir and waits for its turn. If the place is lost meanwhile,
// with the session or because somebody deleted the znode, Acquire joins again at the end of the
// line. The call fails when ctx ends, when the server refuses, or when the Client's RetryPolicy
// stops.
func Acquire(ctx context.Context, c *recipes.Client, dir, name string, data []byte, rule Rule) (*recipes.Hold, error) {
	return calls.Again(ctx, func() (*recipes.Hold, error) {
		p, err := Join(ctx, c, dir, name, data)
		if err != nil {
			return nil, err
		}
		return p.Await(ctx, rule)
	})
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
