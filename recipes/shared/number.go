package shared

import (
	"context"
	"iter"

	"github.com/gozkd/gozkd/recipes"
)

// Number is a number at a znode that many count with. Without a znode, or if that has no data, it is 0. Safe for concurrent use. See Value
// for what it makes for itself, and Close.
type Number[T int32 | int64 | float64] struct {
	value *Value
	codec codec[T]
}

// NewLong returns a number of 8 bytes, the greatest first: that of Curator's DistributedAtomicLong.
func NewLong(c *recipes.Client, path string, opts ...Option) *Number[int64] {
	return &Number[int64]{NewValue(c, path, opts...), long}
}

// NewInt returns a number of 4 bytes, the greatest first: that of Curator's DistributedAtomicInteger and SharedCount, and of kazoo's Counter with
// support_curator.
func NewInt(c *recipes.Client, path string, opts ...Option) *Number[int32] {
	return &Number[int32]{NewValue(c, path, opts...), short}
}

// NewKazooInt returns a number in decimal digits: that of kazoo's Counter. kazoo's has no limits; here, one that is too large is ErrNotNumber.
func NewKazooInt(c *recipes.Client, path string, opts ...Option) *Number[int64] {
	return &Number[int64]{NewValue(c, path, opts...), decimal}
}

// NewKazooFloat returns a number as Python writes it: that of kazoo's Counter whose default is a float.
func NewKazooFloat(c *recipes.Client, path string, opts ...Option) *Number[float64] {
	return &Number[float64]{NewValue(c, path, opts...), float}
}

// Close is Value.Close.
func (n *Number[T]) Close(ctx context.Context) error { return n.value.Close(ctx) }

// Get is Value.Get.
func (n *Number[T]) Get(ctx context.Context) (Versioned[T], error) {
	v, err := n.value.Get(ctx)
	if err != nil {
		return Versioned[T]{}, err
	}
	return convert(v, n.codec.decode)
}

// Next is Value.Next.
func (n *Number[T]) Next(ctx context.Context, after Versioned[T]) (Versioned[T], error) {
	v, err := n.value.Next(ctx, Versioned[[]byte]{Version: after.Version, Zxid: after.Zxid})
	if err != nil {
		return Versioned[T]{}, err
	}
	return convert(v, n.codec.decode)
}

// Watch returns the number and a channel that is closed when it may be another, or ctx has ended: so it is the Maximum of a shared semaphore of
// package lock.
func (n *Number[T]) Watch(ctx context.Context) (int, <-chan struct{}, error) {
	v, fires, err := n.value.watch(ctx)
	if err != nil {
		return 0, nil, err
	}
	x, err := n.codec.decode(v.Value)
	if err != nil {
		return 0, nil, err
	}
	changed := make(chan struct{})
	// Ends with the change or with ctx; nobody waits for it.
	go func() {
		defer close(changed)
		select {
		case <-fires:
		case <-ctx.Done():
		}
	}()
	return int(x), changed, nil
}

// Changes is Value.Changes.
func (n *Number[T]) Changes(ctx context.Context) iter.Seq2[Versioned[T], error] {
	return changes(ctx, n.Next)
}

// Set is Value.Set.
func (n *Number[T]) Set(ctx context.Context, x T) error { return n.value.Set(ctx, n.codec.encode(x)) }

// Init makes the znode with x, if there is none, and reports whether it did.
func (n *Number[T]) Init(ctx context.Context, x T) (bool, error) {
	_, created, err := n.CompareAndSet(ctx, Versioned[T]{}, x)
	return created, err
}

// CompareAndSet is Value.CompareAndSet.
func (n *Number[T]) CompareAndSet(ctx context.Context, old Versioned[T], x T) (Versioned[T], bool, error) {
	v, done, err := n.value.CompareAndSet(ctx, Versioned[[]byte]{Version: old.Version, Zxid: old.Zxid}, n.codec.encode(x))
	if !done || err != nil {
		return Versioned[T]{}, false, err
	}
	now, err := convert(v, n.codec.decode)
	return now, true, err
}

// Add adds delta, as Value.Update does. A sum that is too large is ErrOverflow, where Curator begins again at the other end.
func (n *Number[T]) Add(ctx context.Context, delta T) (Change[T], error) {
	change, err := n.value.Update(ctx, func(old []byte) ([]byte, error) {
		x, err := n.codec.decode(old)
		if err != nil {
			return nil, err
		}
		sum := x + delta
		if delta > 0 && sum < x || delta < 0 && sum > x {
			return nil, ErrOverflow
		}
		return n.codec.encode(sum), nil
	})
	tries := Change[T]{Optimistic: change.Optimistic, Promoted: change.Promoted}
	if err != nil {
		return tries, err
	}
	if tries.Before, err = convert(change.Before, n.codec.decode); err != nil {
		return tries, err
	}
	tries.After, err = convert(change.After, n.codec.decode)
	return tries, err
}
