package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/shared"
)

// addState adds counts, values and leases.
func addState(all map[string]verb) {
	all["count"] = func(_ context.Context, h *handle, a []string) (string, error) {
		switch kind, path := a[0], a[1]; kind {
		case "int":
			return count(h, shared.NewInt(h.client, path))
		case "long":
			return count(h, shared.NewLong(h.client, path, shared.Optimistic(recipes.Times(1, 0)), shared.PromotedToLock(path+"-lock")))
		case "kazoo-int":
			return count(h, shared.NewKazooInt(h.client, path))
		default:
			return "", fmt.Errorf("no count %s", kind)
		}
	}
	all["add"] = func(ctx context.Context, h *handle, a []string) (string, error) {
		delta, err := strconv.Atoi(a[0])
		if err != nil {
			return "", err
		}
		sum, err := h.object.(adder)(ctx, delta)
		return strconv.FormatInt(sum, 10), err
	}
	all["value"] = openValue
	all["value-set"] = func(ctx context.Context, h *handle, a []string) (string, error) {
		data, err := unhex(a[0])
		if err != nil {
			return "", err
		}
		return "", h.object.(*value).Set(ctx, data)
	}
	all["value-try"] = func(ctx context.Context, h *handle, a []string) (string, error) {
		data, err := unhex(a[0])
		if err != nil {
			return "", err
		}
		v := h.object.(*value)
		_, done, err := v.CompareAndSet(ctx, v.seen, data)
		return yes(done), err
	}
	all["value-await"] = awaitValue
	all["lease"] = func(ctx context.Context, h *handle, a []string) (string, error) {
		d, err := millis(a[2])
		if err != nil {
			return "", err
		}
		_, err = shared.NewLease(h.client, a[0], a[1], d).Obtain(ctx)
		if errors.Is(err, shared.ErrLeaseTaken) {
			return "no", nil
		}
		return yes(err == nil), err
	}
}

type adder func(ctx context.Context, delta int) (int64, error)

func count[T int32 | int64](h *handle, n *shared.Number[T]) (string, error) {
	h.object = adder(func(ctx context.Context, delta int) (int64, error) {
		c, err := n.Add(ctx, T(delta))
		return int64(c.After.Value), err
	})
	return h.holds(n.Close, nil)
}

// value is a shared value and its last reading.
type value struct {
	*shared.Value
	seen shared.Versioned[[]byte]
}

func openValue(ctx context.Context, h *handle, a []string) (string, error) {
	seed, err := unhex(a[1])
	if err != nil {
		return "", err
	}
	v := &value{Value: shared.NewValue(h.client, a[0])}
	if _, _, err := v.CompareAndSet(ctx, v.seen, seed); err != nil {
		return "", err
	}
	h.object = v
	return h.holds(v.Close, nil)
}

// awaitValue waits for changes until the value is reached.
func awaitValue(ctx context.Context, h *handle, a []string) (string, error) {
	v := h.object.(*value)
	want, err := unhex(a[0])
	if err != nil {
		return "", err
	}
	came, err := within(ctx, a[1], func(ctx context.Context) (err error) {
		for err == nil && !bytes.Equal(v.seen.Value, want) {
			v.seen, err = v.Next(ctx, v.seen)
		}
		return err
	})
	return yes(came), err
}
