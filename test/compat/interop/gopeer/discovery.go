package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/recipes/discovery"
)

func addDiscovery(all map[string]verb) {
	all["register"] = func(ctx context.Context, h *handle, a []string) (string, error) {
		port, err := strconv.Atoi(a[4])
		if err != nil {
			return "", err
		}
		r, err := discovery.New[string](h.client, a[0]).Register(ctx, discovery.Instance[string]{
			Name: a[1], ID: a[2], Address: a[3], Port: port, Payload: a[5],
		})
		if err != nil {
			return "", err
		}
		return h.holds(r.Unregister, nil)
	}
	// id|address|port|payload|type of each, in order of their ids.
	all["instances"] = func(ctx context.Context, h *handle, a []string) (string, error) {
		found, err := discovery.New[string](h.client, a[0]).Instances(ctx, a[1])
		var list []string
		for _, i := range found {
			list = append(list, fmt.Sprintf("%s|%s|%d|%s|%s", i.ID, i.Address, i.Port, i.Payload, i.Type))
		}
		slices.Sort(list)
		return strings.Join(list, " "), err
	}
}
