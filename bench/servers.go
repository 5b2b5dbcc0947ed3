//go:build linux

package main

import (
	"context"
	"strconv"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/server"
)

// with starts a server, lets do use it, and stops it.
func with(ctx context.Context, k server.Kind, opts server.Options, do func(p *server.Process)) {
	p := must.Get(k.Start(ctx, opts))
	defer must.Finally(p.Stop)
	do(p)
}

// withTargets starts the servers of the command line, each alone or as an ensemble of more members,
// and stops them after use.
func (s *settings) withTargets(ctx context.Context, members int, use func(targets []target)) {
	var targets []target
	for _, k := range s.servers {
		if members > 1 {
			e := must.Get(k.StartEnsemble(ctx, server.EnsembleOptions{Members: members, Keys: keys()}))
			defer must.Finally(e.Stop)
			targets = append(targets, target{e.Name(), followersFirst(ctx, e), e.Pids()})
			continue
		}
		p := must.Get(k.Start(ctx, server.Options{Keys: s.withTLS(keys())}))
		defer must.Finally(p.Stop)
		targets = append(targets, target{p.Name(), []string{p.Addr()}, []int{p.Pid()}})
	}
	use(targets)
}

// keys returns the zoo.cfg of both servers: ZooKeeper's defaults, except for limits that distort.
func keys() map[string]string {
	return map[string]string{
		"tickTime":          "2000",
		"maxSessionTimeout": strconv.Itoa(sessionTimeoutMs),
		"maxClientCnxns":    "0",
		// ZooKeeper's own is 50: thousands that connect at once would measure the clients' retries.
		"clientPortListenBacklog": "4096",
		"admin.enableServer":      "false",
		"4lw.commands.whitelist":  "srvr",
	}
}

// jvmFlags leaves the JVM its defaults (with two processors and more than 2 GiB: G1, the optimising
// compiler), with a heap for a million znodes.
var jvmFlags = []string{"-Xms1g", "-Xmx4g"}

// kinds returns the servers of the comma-separated list. binary is the gozkd to use; if it is
// empty, gozkd is built into dir.
func kinds(ctx context.Context, list, binary, dir string) []server.Kind {
	found := server.Kinds(ctx, list, binary, dir)
	for i := range found {
		found[i].JVMFlags = jvmFlags
	}
	return found
}
