package shared

import (
	"context"
	"errors"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/contend"
)

// IDs hands out numbers, each to one caller, among all IDs of the same Number. IDs reserves a block
// of numbers at a time; the rest of a block is lost when the process ends. Safe for concurrent use.
type IDs struct {
	number *Number[int64]
	block  int64
	mutex  chan struct{} // holds one token while a caller uses the fields below
	next   int64
	left   int64
}

// NewIDs returns IDs that reserve block numbers at a time, as Curator's CachedAtomicLong does.
// NewIDs panics if block is less than 1.
func NewIDs(number *Number[int64], block int64) *IDs {
	if block < 1 {
		panic("shared: a block of IDs must have at least one number")
	}
	return &IDs{number: number, block: block, mutex: make(chan struct{}, 1)}
}

// Next returns the next number. The first is the present value of the Number, usually 0.
func (d *IDs) Next(ctx context.Context) (int64, error) {
	select {
	case d.mutex <- struct{}{}:
	case <-ctx.Done():
		return 0, &recipes.Error{Op: "take a number of", Path: d.number.path, Err: contend.ContextError(ctx)}
	}
	defer func() { <-d.mutex }()
	for d.left == 0 {
		change, err := d.number.Add(ctx, d.block)
		switch {
		case err == nil:
			d.next, d.left = change.Before.Value, d.block
		case !errors.Is(err, recipes.ErrOutcomeUnknown) || ctx.Err() != nil:
			return 0, err
		default: // a block may be lost, which nobody else gets
			if _, err := d.number.client.AwaitSession(ctx); err != nil {
				return 0, err
			}
		}
	}
	d.next++
	d.left--
	return d.next - 1, nil
}
