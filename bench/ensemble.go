//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/test/compat/server"
)

// nMembers is the size of the ensembles.
const nMembers = 3

// ensembleRows names the rows in which ensembles are compared.
var ensembleRows = []string{"get 100 B", "set 100 B", "create 100 B", "multi of 10 sets", "sync", "mixed: 90% get, 10% set"}

// benchEnsemble runs an ensemble of each kind and gives each the same load in turn, spread over all
// members.
func benchEnsemble(ctx context.Context, s *settings) (err error) {
	rows, err := chosenForEnsembles(s.rows)
	if err != nil {
		return err
	}
	var ensembles []*server.Ensemble
	defer func() {
		for _, e := range ensembles {
			err = errors.Join(err, e.Stop())
		}
	}()
	var targets []target
	var memories [][]string
	for _, k := range s.servers {
		e, err := k.startEnsemble(ctx, nMembers, keys())
		if err != nil {
			return err
		}
		ensembles = append(ensembles, e)
		addrs, err := followersFirst(ctx, e)
		if err != nil {
			return err
		}
		t := target{name: e.Name(), addrs: addrs, pids: e.Pids()}
		targets = append(targets, t)
		if err := prepareAll(t.addrs); err != nil {
			return err
		}
		row, err := ensembleMemory(t, "before the load")
		if err != nil {
			return err
		}
		memories = append(memories, row)
	}
	s.out.printf("\nEnsembles of %d, the connections spread over all members, the first on a follower; CPU time and memory are of all members together.\n", nMembers)
	if err := compareThroughput(ctx, s, "ensemble", rows, targets); err != nil {
		return err
	}
	for _, t := range targets {
		row, err := ensembleMemory(t, "after it")
		if err != nil {
			return err
		}
		memories = append(memories, row)
	}
	s.out.table("Memory of all members", []string{"server", "when", "RSS MiB", "of it anonymous", "file", "peak"}, memories)
	return nil
}

// followersFirst returns the members' client addresses, the leader's last.
func followersFirst(ctx context.Context, e *server.Ensemble) ([]string, error) {
	leader, err := e.Leader(ctx)
	if err != nil {
		return nil, err
	}
	var addrs []string
	for _, m := range e.Members {
		if m != leader {
			addrs = append(addrs, m.Addr())
		}
	}
	return append(addrs, leader.Addr()), nil
}

// chosenForEnsembles returns the rows of ensembleRows whose name begins with prefix.
func chosenForEnsembles(prefix string) ([]*workload, error) {
	var list []*workload
	for _, w := range workloads() {
		if slices.Contains(ensembleRows, w.name) && strings.HasPrefix(w.name, prefix) {
			list = append(list, w)
		}
	}
	if list == nil {
		return nil, fmt.Errorf("no row for ensembles begins with %q", prefix)
	}
	return list, nil
}

// ensembleMemory adds up the members' memory, and their peaks, although the peaks may be of
// different moments.
func ensembleMemory(t target, when string) ([]string, error) {
	sum, err := memoryOfAll(t.pids)
	if err != nil {
		return nil, err
	}
	return []string{t.name, when, mib(sum.rss), mib(sum.anon), mib(sum.file), mib(sum.peak)}, nil
}
