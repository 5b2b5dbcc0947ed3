package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/recipes/discovery"
)

func addDiscovery(all map[string]verb) {
	all["register"] = func(ctx context.Context, h *handle, a []string) string {
		port := must.Get(strconv.Atoi(a[4]))
		r := must.Get(discovery.New[string](h.client, a[0]).Register(ctx, discovery.Instance[string]{
			Name: a[1], ID: a[2], Address: a[3], Port: port, Payload: a[5],
		}))
		return h.holds(r.Unregister)
	}
	// id|address|port|payload|type of each, in order of their ids.
	all["instances"] = func(ctx context.Context, h *handle, a []string) string {
		var list []string
		for _, i := range must.Get(discovery.New[string](h.client, a[0]).Instances(ctx, a[1])) {
			list = append(list, fmt.Sprintf("%s|%s|%d|%s|%s", i.ID, i.Address, i.Port, i.Payload, i.Type))
		}
		slices.Sort(list)
		return strings.Join(list, " ")
	}
}
