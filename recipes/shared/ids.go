package shared

import (
	"context"
	"errors"

	"github.com/gozkd/gozkd/recipes"
)

// IDs hands out numbers, each once, of all who count with the same Number: it takes a block of them at a time. What is left of a block when the
// process ends is never handed out. Safe for concurrent use.
type IDs struct {
	number *Number[int64]
	block  int64
	turn   chan struct{} // holds one token while somebody uses what follows
	next   int64
	left   int64
}

// NewIDs returns IDs that take block numbers of number at a time: as Curator's CachedAtomicLong does. It panics if block is less than 1.
func NewIDs(number *Number[int64], block int64) *IDs {
	if block < 1 {
		panic("shared: a block of IDs has one at least")
	}
	return &IDs{number: number, block: block, turn: make(chan struct{}, 1)}
}

// Next returns the next number. Of one Number it begins with what that is, 0 as a rule.
func (d *IDs) Next(ctx context.Context) (int64, error) {
	select {
	case d.turn <- struct{}{}:
	case <-ctx.Done():
		return 0, &recipes.Error{Op: "take a number of", Path: d.number.value.path, Err: context.Cause(ctx)}
	}
	defer func() { <-d.turn }()
	for d.left == 0 {
		change, err := d.number.Add(ctx, d.block)
		switch {
		case err == nil:
			d.next, d.left = change.Before.Value, d.block
		case !errors.Is(err, recipes.ErrOutcomeUnknown) || ctx.Err() != nil:
			return 0, err
		default: // a block may be lost: nobody else gets it
			if _, err := d.number.value.client.AwaitSession(ctx); err != nil {
				return 0, err
			}
		}
	}
	d.next++
	d.left--
	return d.next - 1, nil
}
