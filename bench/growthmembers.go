//go:build linux

package main

import (
	"context"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/server"
)

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
