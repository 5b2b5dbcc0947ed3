package main

import (
	"bytes"
	"context"
	"errors"
	"strconv"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/shared"
	"github.com/gozkd/gozkd/test/compat/interop"
)

// addState adds counts, values and leases.
func addState(all map[string]verb) {
	all["count"] = func(_ context.Context, h *handle, a []string) string {
		switch kind, path := a[0], a[1]; kind {
		case "int":
			return count(h, shared.NewInt(h.client, path))
		case "long":
			return count(h, shared.NewLong(h.client, path, shared.Optimistic(recipes.Times(1, 0)), shared.PromotedToLock(path+"-lock")))
		case "kazoo-int":
			return count(h, shared.NewKazooInt(h.client, path))
		default:
			must.Failf("no count %s", kind)
			return ""
		}
	}
	all["add"] = func(ctx context.Context, h *handle, a []string) string {
		return strconv.FormatInt(h.object.(adder)(ctx, must.Get(strconv.Atoi(a[0]))), 10)
	}
	all["value"] = openValue
	all["value-set"] = func(ctx context.Context, h *handle, a []string) string {
		must.Do(h.object.(*value).Set(ctx, interop.Unhex(a[0])))
		return ""
	}
	all["value-try"] = func(ctx context.Context, h *handle, a []string) string {
		v := h.object.(*value)
		_, done := must.Get2(v.CompareAndSet(ctx, v.seen, interop.Unhex(a[0])))
		return yes(done)
	}
	all["value-await"] = awaitValue
	all["lease"] = func(ctx context.Context, h *handle, a []string) string {
		_, err := shared.NewLease(h.client, a[0], a[1], millis(a[2])).Obtain(ctx)
		if errors.Is(err, recipes.ErrNotAcquired) {
			return "no"
		}
		must.Do(err)
		return "yes"
	}
}

type adder func(ctx context.Context, delta int) int64

func count[T int32 | int64](h *handle, n *shared.Number[T]) string {
	h.object = adder(func(ctx context.Context, delta int) int64 {
		return int64(must.Get(n.Add(ctx, T(delta))).After.Value)
	})
	return h.holds(closes(n))
}

// value is a shared value and its last reading.
type value struct {
	*shared.Value
	seen shared.Versioned[[]byte]
}

func openValue(ctx context.Context, h *handle, a []string) string {
	v := &value{Value: shared.NewValue(h.client, a[0])}
	must.Get2(v.CompareAndSet(ctx, v.seen, interop.Unhex(a[1])))
	h.object = v
	return h.holds(closes(v))
}

// awaitValue waits for changes until the value is reached.
func awaitValue(ctx context.Context, h *handle, a []string) string {
	v := h.object.(*value)
	want := interop.Unhex(a[0])
	return yes(within(ctx, a[1], func(ctx context.Context) (err error) {
		for err == nil && !bytes.Equal(v.seen.Value, want) {
			v.seen, err = v.Next(ctx, v.seen)
		}
		return err
	}))
}
