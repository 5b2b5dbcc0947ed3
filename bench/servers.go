//go:build linux

package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gozkd/gozkd/test/compat/install"
	"github.com/gozkd/gozkd/test/compat/server"
)

// kind is a kind of server that can be started.
type kind struct {
	name string
	// start returns when the server answers.
	start func(ctx context.Context, opts server.Options) (*server.Process, error)
	// startEnsembleWith returns when all members serve.
	startEnsembleWith func(ctx context.Context, opts server.EnsembleOptions) (*server.Ensemble, error)
}

// startEnsemble returns when all n members serve. keys apply to all members.
func (k *kind) startEnsemble(ctx context.Context, n int, keys map[string]string) (*server.Ensemble, error) {
	return k.startEnsembleWith(ctx, server.EnsembleOptions{Members: n, Keys: keys})
}

// keys returns the zoo.cfg of both servers: ZooKeeper's defaults, except for limits that would
// distort the measurement.
func keys() map[string]string {
	return map[string]string{
		"tickTime":          "2000",
		"maxSessionTimeout": strconv.Itoa(sessionTimeoutMs),
		"maxClientCnxns":    "0",
		// ZooKeeper's own backlog is 50: thousands that connect at once would measure the clients'
		// retries.
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
func kinds(ctx context.Context, list, binary, dir string) ([]kind, error) {
	var found []kind
	for _, name := range strings.Split(list, ",") {
		switch version, isZooKeeper := strings.CutPrefix(name, "zookeeper-"); {
		case name == "gozkd":
			if binary == "" {
				root, err := install.Root(ctx)
				if err != nil {
					return nil, err
				}
				if binary, err = server.BuildGozkd(ctx, root, dir); err != nil {
					return nil, err
				}
			}
			found = append(found, kind{name: name,
				start: func(ctx context.Context, opts server.Options) (*server.Process, error) {
					return server.StartGozkd(ctx, binary, opts)
				},
				startEnsembleWith: func(ctx context.Context, opts server.EnsembleOptions) (*server.Ensemble, error) {
					return server.StartGozkdEnsemble(ctx, binary, opts)
				}})
		case isZooKeeper && (version == server.Debian || version == server.Maven):
			found = append(found, kind{name: name,
				start: func(ctx context.Context, opts server.Options) (*server.Process, error) {
					if opts.JVMFlags == nil {
						opts.JVMFlags = jvmFlags
					}
					return server.StartZooKeeper(ctx, version, opts)
				},
				startEnsembleWith: func(ctx context.Context, opts server.EnsembleOptions) (*server.Ensemble, error) {
					if opts.JVMFlags == nil {
						opts.JVMFlags = jvmFlags
					}
					return server.StartZooKeeperEnsemble(ctx, version, opts)
				}})
		default:
			return nil, fmt.Errorf("no server %q: know gozkd, zookeeper-%s and zookeeper-%s", name, server.Debian, server.Maven)
		}
	}
	return found, nil
}

// sleep returns true if d passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
