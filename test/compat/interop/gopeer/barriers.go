package main

import (
	"context"
	"strconv"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/recipes/barrier"
)

func addBarriers(all map[string]verb) {
	all["barrier-set"] = func(ctx context.Context, h *handle, a []string) string {
		must.Do(barrier.New(h.client, a[0]).Set(ctx))
		return ""
	}
	all["barrier-remove"] = func(ctx context.Context, h *handle, a []string) string {
		must.Do(barrier.New(h.client, a[0]).Remove(ctx))
		return ""
	}
	all["barrier-wait"] = func(ctx context.Context, h *handle, a []string) string {
		return yes(within(ctx, a[1], barrier.New(h.client, a[0]).Wait))
	}
	all["enter"] = func(ctx context.Context, h *handle, a []string) string {
		h.object = must.Get(barrier.NewDouble(h.client, a[0], must.Get(strconv.Atoi(a[1])), "go").Enter(ctx))
		return "yes"
	}
	all["leave"] = func(ctx context.Context, h *handle, _ []string) string {
		must.Do(h.object.(*barrier.Participant).Leave(ctx))
		return "yes"
	}
}
