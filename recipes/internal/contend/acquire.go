package contend

import (
	"context"
	"errors"

	"github.com/gozkd/gozkd/recipes"
)

// Acquire takes a place in the line of dir and waits for its turn. When the place is lost meanwhile, with the session or because somebody
// deleted the znode, it takes the last place anew. It ends with ctx, or with an error of the server's or of the Client's RetryPolicy.
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
		if ctx.Err() != nil || !errors.Is(err, recipes.ErrSessionLost) && !errors.Is(err, recipes.ErrNotHeld) {
			return nil, err
		}
	}
}

// TryAcquire takes a place in the line of dir, and leaves it again if it is not its turn at once; then it returns nil and no error.
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
