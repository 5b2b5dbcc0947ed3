package main

import (
	"context"
	"strconv"

	"github.com/gozkd/gozkd/recipes/barrier"
)

func addBarriers(all map[string]verb) {
	all["barrier-set"] = func(ctx context.Context, h *handle, a []string) (string, error) {
		return "", barrier.New(h.client, a[0]).Set(ctx)
	}
	all["barrier-remove"] = func(ctx context.Context, h *handle, a []string) (string, error) {
		return "", barrier.New(h.client, a[0]).Remove(ctx)
	}
	all["barrier-wait"] = func(ctx context.Context, h *handle, a []string) (string, error) {
		open, err := within(ctx, a[1], barrier.New(h.client, a[0]).Wait)
		return yes(open), err
	}
	all["enter"] = func(ctx context.Context, h *handle, a []string) (string, error) {
		members, err := strconv.Atoi(a[1])
		if err != nil {
			return "", err
		}
		m, err := barrier.NewDouble(h.client, a[0], members, "go").Enter(ctx)
		h.object = m
		return yes(err == nil), err
	}
	all["leave"] = func(ctx context.Context, h *handle, _ []string) (string, error) {
		err := h.object.(*barrier.Participant).Leave(ctx)
		return yes(err == nil), err
	}
}
