//go:build linux

package main

import (
	"context"
	"fmt"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/test/compat/server"
)

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
