//go:build linux

package main

import (
	"context"
	"fmt"

	"github.com/gozkd/gozkd/internal/testkit/must"
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

func membersPiece() growthPiece {
	return growthPiece{
		name: "members", title: "Growth with members of an ensemble", axis: "members", unit: "member",
		sizes:   []int{1, 3, 5, 7},
		measure: growMembers,
		rates:   true,
		note: "One member is a standalone server. The connections are spread over all members, the first on a follower; memory is that of all members added up, after the load. " +
			"All members and the load share the machine, so operations per second say what it can do with so many servers on it.",
	}
}

func growMembers(ctx context.Context, g *growth, k kind, size int) {
	if size == 1 {
		g.serve(ctx, k, server.Options{}, func(p *server.Process) { growTogether(ctx, g, targetOf(p), size) })
		return
	}
	e := k.startEnsemble(ctx, size, keys())
	defer must.Finally(e.Stop)
	growTogether(ctx, g, target{name: e.Name(), addrs: followersFirst(ctx, e), pids: e.Pids()}, size)
}

func growTogether(ctx context.Context, g *growth, t target, size int) {
	prepareAll(t.addrs)
	var rows []*workload
	for _, w := range workloads() {
		if w.name == "get 100 B" || w.name == "set 100 B" || w.name == "create 100 B" {
			rows = append(rows, w)
		}
	}
	g.warm(ctx, t, rows...)
	for _, sh := range []shape{{1, 1}, {100, 1}, {16, 16}} {
		for _, w := range rows {
			g.load(ctx, t, size, sh, w)
		}
	}
	g.noteMemory(t, size)
}

const (
	payloadZnodes = 16
	// largestPayload leaves room for the rest of a request below jute.maxbuffer, 1,048,575.
	largestPayload = 1<<20 - 1<<10
	// payloadInFlight bounds the data in flight.
	payloadInFlight = 4 << 20
)

func payloadsPiece() growthPiece {
	return growthPiece{
		name: "payloads", title: "Growth with the size of data", axis: "bytes of data", unit: "byte",
		sizes:   []int{0, 100, 1 << 10, 10 << 10, 100 << 10, largestPayload},
		measure: growPayloads,
		upTo:    func() (int, string) { return largestPayload, "jute.maxbuffer, as shipped on both, is 1,048,575" },
		note: fmt.Sprintf("Get and set of one of %d znodes at random. Pipelined is 16x16, with fewer in flight where that would be more than 4 MiB: "+
			"16x2 at 100 KiB, 4x1 at 1 MiB. MB/s counts the data alone.", payloadZnodes),
	}
}

func growPayloads(ctx context.Context, g *growth, k kind, size int) {
	g.serve(ctx, k, server.Options{}, func(p *server.Process) {
		t := targetOf(p)
		data := letters(size)
		path := func(i int) string { return fmt.Sprintf("/d%02d", i) }
		createAll(p.Addr(), 1, payloadZnodes, data, path)
		get := &workload{name: "get", replyBytes: replyLen(4 + size + proto.StatBytes), next: func(c *client) bool {
			c.request(proto.OpGetData, (&proto.PathWatchRequest{Path: path(c.next(payloadZnodes))}).Append)
			return true
		}}
		set := &workload{name: "set", replyBytes: replyLen(proto.StatBytes), next: func(c *client) bool {
			c.request(proto.OpSetData, (&proto.SetDataRequest{Path: path(c.next(payloadZnodes)), Data: data, Version: -1}).Append)
			return true
		}}
		pipelined := pipelinedFor(size)
		for _, w := range []*workload{get, set} {
			runOnce(t, pipelined, w.until(ctx), growthWarm/2)
		}
		for _, sh := range []shape{{1, 1}, pipelined} {
			how := "1x1"
			if sh.window > 1 || sh.connections > 1 {
				how = "pipelined"
			}
			for _, w := range []*workload{get, set} {
				awaitIdle(ctx, t.pids)
				r := runOnce(t, sh, w.until(ctx), growthRound)
				must.Do(ctx.Err())
				g.noteLoad(t.name, size, how, w.name, r)
				if size > 0 {
					g.note(how+": data per second", "MB/s", w.name, t.name, size, r.opsPerSecond()*float64(size)/1e6)
				}
				progress("growth: %s %s: %s %s %s: %.0f ops/s, p50 %s µs, %.2f µs of CPU per op", g.piece.name, thousands(float64(size)), t.name, w.name, sh,
					r.opsPerSecond(), micros(r.latencies.quantile(0.5)), r.cpuPerOp())
			}
		}
		g.noteMemory(t, size)
	})
}

// pipelinedFor returns 16x16, or fewer requests in flight if 16x16 would exceed payloadInFlight.
func pipelinedFor(size int) shape {
	inFlight := min(payloadInFlight/max(size, 1), 256)
	if inFlight < 16 {
		return shape{inFlight, 1}
	}
	return shape{16, inFlight / 16}
}
