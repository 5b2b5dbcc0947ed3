//go:build linux

package main

import (
	"context"
	"fmt"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/test/compat/server"
)

const crowdedPath = "/crowd"

func childrenPiece() growthPiece {
	return growthPiece{
		name: "children", title: "Growth with children of one znode", axis: "children", unit: "child",
		sizes:   []int{10, 100, 1_000, 10_000, 100_000},
		measure: growChildren,
		upTo:    func() (int, string) { return 100_000, "the names of more would not fit into a reply" },
		note: "Names have six characters, so those of 100,000 take 1,000,004 bytes: less than jute.maxbuffer, which is as shipped on both (1,048,575). " +
			"create/delete: each connection creates one more child and deletes it, again and again, each counted. exists is of the parent.",
	}
}

func growChildren(ctx context.Context, g *growth, k kind, size int) {
	const nameBytes = 4 + len("c00000")
	g.serve(ctx, k, server.Options{}, func(p *server.Process) {
		t := targetOf(p)
		fillOne(p.Addr(), crowdedPath)
		fillAt(ctx, p.Addr(), size, nil, crowdedChild)
		g.noteMemory(t, size)
		one, list := childAndBack(), &workload{name: "getChildren", replyBytes: replyLen(4 + size*nameBytes), next: func(c *client) bool {
			c.request(proto.OpGetChildren, (&proto.PathWatchRequest{Path: crowdedPath}).Append)
			return true
		}}
		exists := &workload{name: "exists", replyBytes: replyLen(proto.StatBytes), next: func(c *client) bool {
			c.request(proto.OpExists, (&proto.PathWatchRequest{Path: crowdedPath}).Append)
			return true
		}}
		g.warm(ctx, t, one, exists)
		// One at a time: 256 lists in flight would take a quarter of a gigabyte.
		runOnce(t, shape{1, 1}, list.until(ctx), growthWarm/2)
		for _, sh := range []shape{{1, 1}, {16, 16}} {
			for _, w := range []*workload{one, exists} {
				g.load(ctx, t, size, sh, w)
			}
		}
		g.load(ctx, t, size, shape{1, 1}, list)
	})
}

func crowdedChild(i int) string { return fmt.Sprintf("%s/c%05d", crowdedPath, i) }

// childAndBack creates and deletes a child per connection. The child's name has six characters,
// like all other names.
func childAndBack() *workload {
	return createAndDelete(nil, func(c *client) string { return fmt.Sprintf("%s/c4999%c", crowdedPath, 'a'+c.index) })
}
