package main

import (
	"context"
	"errors"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/election"
	"github.com/gozkd/gozkd/test/compat/interop"
)

// guarded is what a handle holds after "hold".
type guarded interface {
	Context() context.Context
	Commit(ctx context.Context, ops ...client.Op) ([]client.Result, error)
}

// addGuarded adds writes that need a lock, a lease or leadership. "hold KIND PATH ID" acquires one
// of these. "commit COUNTER VALUE OP" sets COUNTER, unless that is "-", and creates the znode OP,
// in a multi that fails once the lock is lost. "alive" answers whether the lock's Context is alive.
//
// unguarded leaves the guard out of the multi: a planted fault.
func addGuarded(all map[string]verb, unguarded bool) {
	all["hold"] = func(ctx context.Context, h *handle, a []string) string {
		switch kind, path := a[0], a[1]; kind {
		case "mutex":
			return all["lock"](ctx, h, a[1:])
		case "semaphore":
			return all["acquire"](ctx, h, []string{path, "2"})
		case "latch":
			l := election.NewLatch(h.client, path, a[2])
			must.Do(l.Start(context.WithoutCancel(ctx)))
			h.object = must.Get(l.Await(ctx))
			return h.holds(closes(l))
		default:
			must.Failf("nothing to hold: %s", kind)
			return ""
		}
	}
	all["alive"] = func(_ context.Context, h *handle, _ []string) string {
		return yes(h.object.(guarded).Context().Err() == nil)
	}
	all["commit"] = func(ctx context.Context, h *handle, a []string) string {
		ops := []client.Op{client.CreateOp(a[2], nil, client.CreateOptions{})}
		if a[0] != "-" {
			ops = append(ops, client.SetOp(a[0], interop.Unhex(a[1]), -1))
		}
		if unguarded {
			must.Get(h.client.Multi(ctx, ops...))
			return "yes"
		}
		_, err := h.object.(guarded).Commit(ctx, ops...)
		if errors.Is(err, recipes.ErrNotHeld) {
			return "no"
		}
		must.Do(err)
		return "yes"
	}
}
