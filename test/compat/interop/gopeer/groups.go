package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/agree"
	"github.com/gozkd/gozkd/recipes/group"
)

// addGroups adds groups, parties, partitioners and persistent nodes.
func addGroups(all map[string]verb) {
	all["join"] = func(ctx context.Context, h *handle, a []string) (string, error) {
		data, err := unhex(a[2])
		if err != nil {
			return "", err
		}
		g := group.New(h.client, a[0])
		m, err := g.Join(ctx, a[1], data)
		if err != nil {
			return "", err
		}
		h.object = g
		return h.holds(m.Leave, nil)
	}
	all["members"] = func(ctx context.Context, h *handle, _ []string) (string, error) {
		members, err := h.object.(*group.Group).Members(ctx)
		var list []string
		for _, m := range members {
			list = append(list, m.ID+"="+tohex(m.Payload))
		}
		slices.Sort(list)
		return strings.Join(list, " "), err
	}
	all["party"] = func(ctx context.Context, h *handle, a []string) (string, error) {
		p := group.NewParty(h.client, a[1])
		if a[0] == "shallow" {
			p = group.NewShallowParty(h.client, a[1])
		}
		m, err := p.Join(ctx, a[2])
		if err != nil {
			return "", err
		}
		h.object = p
		return h.holds(m.Leave, nil)
	}
	all["guests"] = func(ctx context.Context, h *handle, _ []string) (string, error) {
		list, err := h.object.(*group.Party).Members(ctx)
		slices.Sort(list)
		return strings.Join(list, " "), err
	}
	all["partition"] = func(ctx context.Context, h *handle, a []string) (string, error) {
		return divide(ctx, h, agree.NewPartitioner(h.client, a[0], a[2:], a[1], 200*time.Millisecond))
	}
	all["share"] = func(_ context.Context, h *handle, _ []string) (string, error) {
		parts := h.object.(*atomic.Pointer[[]string]).Load()
		if parts == nil {
			return "none", nil
		}
		return strings.Join(slices.Sorted(slices.Values(*parts)), " "), nil
	}
	all["node"] = func(ctx context.Context, h *handle, a []string) (string, error) {
		data, err := unhex(a[1])
		if err != nil {
			return "", err
		}
		n := group.NewPersistentZnode(h.client, a[0], data, group.PersistentZnodeOptions{Mode: recipes.Ephemeral})
		n.Start()
		_, err = n.Wait(ctx)
		return h.holds(n.Close, err)
	}
}

// divide takes part until the handle is released, and stores its share in the handle's object.
func divide(ctx context.Context, h *handle, p *agree.Partitioner) (string, error) {
	var share atomic.Pointer[[]string]
	ctx, stop := context.WithCancel(ctx)
	done := make(chan error, 1) // buffered, as nobody may ask
	// The handle's release, or the end of the peer, stops and awaits it.
	go func() {
		done <- p.Run(ctx, func(ctx context.Context, parts []string) error {
			share.Store(&parts)
			defer share.Store(nil)
			<-ctx.Done()
			return ctx.Err()
		})
	}()
	h.object = &share
	return h.holds(func(context.Context) error {
		stop()
		if err := <-done; !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	}, nil)
}
