package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/agree"
	"github.com/gozkd/gozkd/recipes/discovery"
	"github.com/gozkd/gozkd/recipes/group"
	"github.com/gozkd/gozkd/test/compat/interop"
)

// addGroups adds groups, parties, partitioners and persistent nodes.
func addGroups(all map[string]verb) {
	all["join"] = func(ctx context.Context, h *handle, a []string) string {
		g := group.New(h.client, a[0])
		m := must.Get(g.Join(ctx, a[1], interop.Unhex(a[2])))
		h.object = g
		return h.holds(closes(m))
	}
	listed := func(text func(m group.Member) string) verb {
		return func(ctx context.Context, h *handle, _ []string) string {
			var list []string
			for _, m := range must.Get(h.object.(*group.Group).Members(ctx)) {
				list = append(list, text(m))
			}
			slices.Sort(list)
			return strings.Join(list, " ")
		}
	}
	all["members"] = listed(func(m group.Member) string { return m.ID + "=" + interop.Hex(m.Payload) })
	all["guests"] = listed(func(m group.Member) string { return m.ID })
	all["party"] = func(ctx context.Context, h *handle, a []string) string {
		p := group.NewParty(h.client, a[1])
		if a[0] == "shallow" {
			p = group.NewShallowParty(h.client, a[1])
		}
		m := must.Get(p.Join(ctx, a[2], nil))
		h.object = p
		return h.holds(closes(m))
	}
	all["partition"] = func(ctx context.Context, h *handle, a []string) string {
		return divide(ctx, h, agree.NewPartitioner(h.client, a[0], a[2:], a[1], 200*time.Millisecond))
	}
	all["share"] = func(_ context.Context, h *handle, _ []string) string {
		parts := h.object.(*atomic.Pointer[[]string]).Load()
		if parts == nil {
			return "none"
		}
		return strings.Join(*parts, " ")
	}
	all["node"] = func(ctx context.Context, h *handle, a []string) string {
		n := group.NewPersistentZnode(h.client, a[0], interop.Unhex(a[1]), recipes.CreateOptions{Ephemeral: true})
		must.Do(n.Start(context.WithoutCancel(ctx)))
		must.Get(n.Wait(ctx))
		return h.holds(closes(n))
	}
}

// divide takes part until the handle is released, and stores its share in the handle's object.
func divide(ctx context.Context, h *handle, p *agree.Partitioner) string {
	var share atomic.Pointer[[]string]
	ctx, stop := context.WithCancel(ctx)
	done := make(chan error, 1) // buffered, as nobody may ask
	// The handle's release, or the end of the peer, stops and awaits it.
	go func() {
		done <- p.Run(ctx, func(ctx context.Context, held map[string]*recipes.Hold) error {
			parts := slices.Sorted(maps.Keys(held))
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
	})
}

func addDiscovery(all map[string]verb) {
	all["register"] = func(ctx context.Context, h *handle, a []string) string {
		port := must.Get(strconv.Atoi(a[4]))
		r := must.Get(discovery.New[string](h.client, a[0]).Register(ctx, discovery.Instance[string]{
			Name: a[1], ID: a[2], Address: a[3], Port: port, Payload: a[5],
		}))
		return h.holds(closes(r))
	}
	// A payload of the types that a program has without a class of its own: none, a map, a list.
	all["register-object"] = func(ctx context.Context, h *handle, a []string) string {
		in := discovery.Instance[any]{Name: a[1], ID: a[2], Port: 80}
		switch a[3] {
		case "none":
			in.Payload = struct{}{}
		case "map":
			in.Payload, in.PayloadClass = map[string]string{"zone": "north"}, discovery.JavaMap
		case "list":
			in.Payload = []string{"north"}
		}
		return h.holds(closes(must.Get(discovery.New[any](h.client, a[0]).Register(ctx, in))))
	}
	all["objects"] = func(ctx context.Context, h *handle, a []string) string {
		var list []string
		for _, in := range must.Get(discovery.New[any](h.client, a[0]).Instances(ctx, a[1])) {
			switch p := in.Payload.(type) {
			case map[string]any:
				list = append(list, fmt.Sprintf("%s={zone=%v}", in.ID, p["zone"]))
			case nil:
				list = append(list, in.ID+"=null")
			default:
				list = append(list, fmt.Sprintf("%s=%v", in.ID, p))
			}
		}
		slices.Sort(list)
		return strings.Join(list, " ")
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
