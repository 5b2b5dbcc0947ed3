//go:build linux

package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/proto"
)

// Sizes of what may make a server slower or larger besides znodes, which scale varies.
var (
	growthSessions  = []int{10, 1_000, 5_000}          // each with a connection: the limit on open files bounds them
	growthAbandoned = []int{10, 10_000, 100_000}       // without a connection
	growthWatches   = []int{1_000, 100_000, 1_000_000} // multiples of watchingConnections
	growthChildren  = []int{10, 1_000, 100_000}        // the names of more would not fit into a reply
	growthMembers   = []int{1, 3, 5, 7}
	growthData      = []int{100, 10 << 10, 1<<20 - 1<<10} // the last leaves room for the rest below jute.maxbuffer
)

const (
	watchingConnections = 10
	growthLargeZnodes   = 16
)

// largeReplies are shapes for replies of up to a megabyte: few in flight.
var largeReplies = []shape{{1, 1}, {16, 1}}

// growths returns the states of growth.
func growths() (all []scaled) {
	for _, n := range growthSessions {
		all = append(all, besideSessions(n, "idle sessions", func(opened []*client) ([]*client, error) { return opened, nil }))
	}
	for _, n := range growthAbandoned {
		all = append(all, besideSessions(n, "sessions without a connection", func(opened []*client) ([]*client, error) { return nil, closeIdle(opened) }))
	}
	for _, n := range growthWatches {
		all = append(all, besideWatches(n))
	}
	for _, n := range growthChildren {
		all = append(all, listed(n))
	}
	for _, n := range growthMembers {
		all = append(all, scaled{
			members: n,
			rows:    labelled(n, "members", workloads(), "get 100 B", "set 100 B", "create 100 B"),
			fill:    func(_ context.Context, addrs []string) func() error { prepareAll(addrs); return nothingToEnd },
		})
	}
	for _, n := range growthData {
		all = append(all, withData(n))
	}
	return all
}

// labelled returns the rows with these names, named for a state.
func labelled(n int, of string, all []*workload, names ...string) (rows []*workload) {
	for _, name := range names {
		w := *named(all, name)
		w.name = fmt.Sprintf("%s, %s: %s", of, thousands(float64(n)), name)
		rows = append(rows, &w)
	}
	return rows
}

// besideSessions returns gets and sets beside n sessions that send nothing. keep gets the clients
// of some of them, and returns those whose connections stay open.
func besideSessions(n int, of string, keep func([]*client) ([]*client, error)) scaled {
	const atOnce, openers = 500, 16 // below any limit on open files; in parallel, because each open waits for a sync
	return scaled{
		rows: labelled(n, of, workloads(), "get 100 B", "set 100 B"),
		fill: func(ctx context.Context, addrs []string) func() error {
			prepareAll(addrs)
			var open []*client
			for opened := 0; opened < n; opened += atOnce {
				open = append(open, must.Get(keep(openIdle(ctx, addrs[0], min(atOnce, n-opened), openers)))...)
			}
			return func() error { return closeIdle(open) }
		},
	}
}

// besideWatches returns sets of znodes that nobody watches beside n watches of few connections,
// each of which watches the same znodes.
func besideWatches(n int) scaled {
	return scaled{
		rows: labelled(n, "watches", workloads(), "set 100 B"),
		fill: func(ctx context.Context, addrs []string) func() error {
			prepareAll(addrs)
			fillMany(ctx, addrs[0], n/watchingConnections, nil)
			l := openLoad(addrs, watchingConnections, 64)
			watch := &workload{name: "watch", replyBytes: replyLen(proto.StatBytes), next: func(c *client) bool {
				if c.made == n/watchingConnections {
					return false
				}
				c.request(proto.OpExists, (&proto.PathWatchRequest{Path: manyPath(c.made), Watch: true}).Append)
				c.made++
				return true
			}}
			l.play(watch.until(ctx), 0, nil)
			must.Do(ctx.Err())
			return l.close
		},
	}
}

// listed returns the list of a znode with n children, whose names have six characters.
func listed(n int) scaled {
	const parent, name = "/crowd", "c00000"
	list := &workload{name: "getChildren", replyBytes: replyLen(4 + n*(4+len(name))), next: func(c *client) bool {
		c.request(proto.OpGetChildren, (&proto.PathWatchRequest{Path: parent}).Append)
		return true
	}}
	return scaled{
		shapes: largeReplies,
		rows:   labelled(n, "children", []*workload{list}, list.name),
		fill: func(ctx context.Context, addrs []string) func() error {
			fillAt(ctx, addrs[0], 1, nil, func(int) string { return parent })
			fillAt(ctx, addrs[0], n, nil, func(i int) string { return fmt.Sprintf("%s/c%05d", parent, i) })
			return nothingToEnd
		},
	}
}

// withData returns gets and sets of znodes with this many bytes.
func withData(size int) scaled {
	data := []byte(strings.Repeat("d", size))
	path := func(i int) string { return fmt.Sprintf("/d%02d", i) }
	rows := []*workload{
		{name: "get", replyBytes: replyLen(4 + size + proto.StatBytes), next: func(c *client) bool {
			c.request(proto.OpGetData, (&proto.PathWatchRequest{Path: path(c.next(growthLargeZnodes))}).Append)
			return true
		}},
		{name: "set", replyBytes: replyLen(proto.StatBytes), next: func(c *client) bool {
			appendSet(c, path(c.next(growthLargeZnodes)), data)
			return true
		}},
	}
	return scaled{
		shapes: largeReplies,
		rows:   labelled(size, "bytes of data", rows, "get", "set"),
		fill: func(_ context.Context, addrs []string) func() error {
			createAll(addrs[0], 1, growthLargeZnodes, data, path)
			return nothingToEnd
		},
	}
}
