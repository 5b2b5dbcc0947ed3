package shared

import (
	"context"
	"errors"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/calls"
)

// Number is a Value that is a number; 0 without a znode or without data. Safe for concurrent use.
type Number[T int32 | int64 | float64] struct{ *atomicValue[T] }

// NewLong returns a number of 8 bytes, big-endian: Curator's DistributedAtomicLong.
func NewLong(c *recipes.Client, path string, opts ...Option) *Number[int64] {
	return &Number[int64]{newAtomicValue(c, path, long, opts)}
}

// NewInt returns a number of 4 bytes, big-endian: Curator's DistributedAtomicInteger and
// SharedCount, and kazoo's Counter with support_curator.
func NewInt(c *recipes.Client, path string, opts ...Option) *Number[int32] {
	return &Number[int32]{newAtomicValue(c, path, short, opts)}
}

// NewKazooInt returns a number in decimal digits: kazoo's Counter. A number that exceeds 64 bits,
// which kazoo allows, is recipes.ErrFormat.
func NewKazooInt(c *recipes.Client, path string, opts ...Option) *Number[int64] {
	return &Number[int64]{newAtomicValue(c, path, decimal, opts)}
}

// NewKazooFloat returns a number in Python's notation: kazoo's Counter whose default is a float.
func NewKazooFloat(c *recipes.Client, path string, opts ...Option) *Number[float64] {
	return &Number[float64]{newAtomicValue(c, path, float, opts)}
}

// Watch returns the number and a channel that is closed when the number may have changed or ctx has
// ended. With Watch, a Number can be the Maximum of a shared semaphore of package lock.
func (n *Number[T]) Watch(ctx context.Context) (int, <-chan struct{}, error) {
	data, _, fires, err := n.watch(ctx)
	if err != nil {
		return 0, nil, err
	}
	x, err := n.codec.decode(data)
	if err != nil {
		return 0, nil, err
	}
	changed := make(chan struct{})
	// Ends with the change or with ctx; nobody waits.
	go func() {
		defer close(changed)
		select {
		case <-fires:
		case <-ctx.Done():
		}
	}()
	return int(x), changed, nil
}

// Add adds delta with Update. If the sum overflows, the error is ErrOverflow; Curator wraps around.
func (n *Number[T]) Add(ctx context.Context, delta T) (Change[T], error) {
	return n.Update(ctx, func(x T) (T, error) {
		sum := x + delta
		if delta > 0 && sum < x || delta < 0 && sum > x {
			return 0, ErrOverflow
		}
		return sum, nil
	})
}

// IDs hands out numbers, each to one caller, among all IDs of the same Number. IDs reserves a block
// of numbers at a time; the rest of a block is lost when the process ends. Safe for concurrent use.
type IDs struct {
	number *Number[int64]
	block  int64
	turn   chan struct{} // capacity 1: holds a value while no caller uses the fields below
	next   int64
	left   int64
}

// NewIDs returns IDs that reserve block numbers at a time, as Curator's CachedAtomicLong does.
// NewIDs panics if block is less than 1.
func NewIDs(number *Number[int64], block int64) *IDs {
	if block < 1 {
		panic("shared: a block of IDs must have at least one number")
	}
	d := &IDs{number: number, block: block, turn: make(chan struct{}, 1)}
	d.turn <- struct{}{}
	return d
}

// Next returns the next number. The first is the present value of the Number, usually 0.
func (d *IDs) Next(ctx context.Context) (int64, error) {
	if err := calls.Await(ctx, "take a number of", d.number.path, d.turn); err != nil {
		return 0, err
	}
	defer func() { d.turn <- struct{}{} }()
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
