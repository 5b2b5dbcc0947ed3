package main

import (
	"context"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/group"
)

// addGroups adds groups, parties and persistent nodes.
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
	all["node"] = func(ctx context.Context, h *handle, a []string) (string, error) {
		data, err := unhex(a[1])
		if err != nil {
			return "", err
		}
		n := group.NewNode(h.client, a[0], data, group.NodeOptions{Mode: recipes.Ephemeral})
		n.Start()
		_, err = n.Wait(ctx)
		return h.holds(n.Close, err)
	}
}
