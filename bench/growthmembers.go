//go:build linux

package main

import (
	"context"

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

func growMembers(ctx context.Context, g *growth, k kind, size int) error {
	if size == 1 {
		return g.serve(ctx, k, server.Options{}, func(p *server.Process) error { return growTogether(ctx, g, targetOf(p), size) })
	}
	e, err := k.startEnsemble(ctx, size, keys())
	if err != nil {
		return err
	}
	addrs, err := followersFirst(ctx, e)
	if err == nil {
		err = growTogether(ctx, g, target{name: e.Name(), addrs: addrs, pids: e.Pids()}, size)
	}
	return finally(err, e.Stop)
}

func growTogether(ctx context.Context, g *growth, t target, size int) error {
	if err := prepareAll(t.addrs); err != nil {
		return err
	}
	var rows []*workload
	for _, w := range workloads() {
		if w.name == "get 100 B" || w.name == "set 100 B" || w.name == "create 100 B" {
			rows = append(rows, w)
		}
	}
	if err := g.warm(ctx, t, rows...); err != nil {
		return err
	}
	for _, sh := range []shape{{1, 1}, {100, 1}, {16, 16}} {
		for _, w := range rows {
			if err := g.load(ctx, t, size, sh, w); err != nil {
				return err
			}
		}
	}
	_, err := g.noteMemory(t, size)
	return err
}
