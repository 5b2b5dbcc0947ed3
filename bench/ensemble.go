//go:build linux

package main

import (
	"context"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/server"
)

// nMembers is the size of the ensembles.
const nMembers = 3

// ensembleRows names the rows in which ensembles are compared.
var ensembleRows = []string{"get 100 B", "set 100 B", "create 100 B", "multi of 10 sets", "sync", "mixed: 90% get, 10% set"}

// benchEnsemble runs an ensemble of each kind and gives each the same load in turn, spread over all
// members.
func benchEnsemble(ctx context.Context, s *settings) {
	rows := chosenForEnsembles(s.rows)
	var targets []target
	var memories [][]string
	for _, k := range s.servers {
		e := k.startEnsemble(ctx, nMembers, keys())
		defer must.Finally(e.Stop)
		t := target{name: e.Name(), addrs: followersFirst(ctx, e), pids: e.Pids()}
		targets = append(targets, t)
		prepareAll(t.addrs)
		memories = append(memories, ensembleMemory(t, "before the load"))
	}
	s.out.printf("\nEnsembles of %d, the connections spread over all members, the first on a follower; CPU time and memory are of all members together.\n", nMembers)
	compareThroughput(ctx, s, "ensemble", rows, targets)
	for _, t := range targets {
		memories = append(memories, ensembleMemory(t, "after it"))
	}
	s.out.table("Memory of all members", []string{"server", "when", "RSS MiB", "of it anonymous", "file", "peak"}, memories)
}

// followersFirst returns the members' client addresses, the leader's last.
func followersFirst(ctx context.Context, e *server.Ensemble) []string {
	leader := must.Get(e.Leader(ctx))
	var addrs []string
	for _, m := range e.Members {
		if m != leader {
			addrs = append(addrs, m.Addr())
		}
	}
	return append(addrs, leader.Addr())
}

// chosenForEnsembles returns the rows of ensembleRows whose name begins with prefix.
func chosenForEnsembles(prefix string) []*workload {
	var list []*workload
	for _, w := range workloads() {
		if slices.Contains(ensembleRows, w.name) && strings.HasPrefix(w.name, prefix) {
			list = append(list, w)
		}
	}
	if list == nil {
		must.Failf("no row for ensembles begins with %q", prefix)
	}
	return list
}

// ensembleMemory adds up the members' memory, and their peaks, although the peaks may be of
// different moments.
func ensembleMemory(t target, when string) []string {
	sum := memoryOfAll(t.pids)
	return []string{t.name, when, mib(sum.rss), mib(sum.anon), mib(sum.file), mib(sum.peak)}
}
