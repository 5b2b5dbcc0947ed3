//go:build linux

package main

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/gozkd/gozkd/test/compat/install"
	"github.com/gozkd/gozkd/test/compat/server"
)

// kind is a server that can be started.
type kind struct {
	name string
	// start returns when the server answers.
	start func(ctx context.Context, opts server.Options) (*server.Process, error)
	// startEnsembleWith returns when all members serve.
	startEnsembleWith func(ctx context.Context, opts server.EnsembleOptions) (*server.Ensemble, error)
	// collect makes the process give back what it does not need, or returns an error that says why it can't be told to.
	collect func(ctx context.Context, p *server.Process) error
	memory  bool // it can do without a disk
}

// startEnsemble returns when all of n members serve. keys are of all members.
func (k *kind) startEnsemble(ctx context.Context, n int, keys map[string]string) (*server.Ensemble, error) {
	return k.startEnsembleWith(ctx, server.EnsembleOptions{Members: n, Keys: keys})
}

// keys are the lines of zoo.cfg for both servers: ZooKeeper's defaults but for what would get in the way of measuring.
func keys() map[string]string {
	return map[string]string{
		"tickTime":          "2000",
		"maxSessionTimeout": strconv.Itoa(sessionTimeoutMs),
		"maxClientCnxns":    "0",
		// ZooKeeper's own is 50: thousands that connect at once would measure how long clients wait before they try again. Gozkd has the system's.
		"clientPortListenBacklog": "4096",
		"admin.enableServer":      "false",
		"4lw.commands.whitelist":  "srvr",
	}
}

// jvmFlags leave the JVM its defaults (on two processors and more than 2 GiB: G1, the optimising compiler) with a heap
// that a million znodes fit into.
var jvmFlags = []string{"-Xms1g", "-Xmx4g"}

// kinds returns the servers named in the comma-separated list. binary is the gozkd to use; empty: it is built into dir.
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
			found = append(found, kind{name: name, memory: true, collect: awaitGC,
				start: func(ctx context.Context, opts server.Options) (*server.Process, error) {
					return server.StartGozkd(ctx, binary, opts)
				},
				startEnsembleWith: func(ctx context.Context, opts server.EnsembleOptions) (*server.Ensemble, error) {
					return server.StartGozkdEnsemble(ctx, binary, opts)
				}})
		case isZooKeeper && (version == server.Debian || version == server.Maven):
			found = append(found, kind{name: name, collect: jvmGC,
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

// awaitGC waits until the Go runtime has collected once more and says so in the process's log: the process runs with
// GODEBUG=gctrace=1. A server with nothing to do collects two to three minutes after its last collection, and never if it
// had none: a new one, whose heap has not reached 4 MiB, is settled as it is.
func awaitGC(ctx context.Context, p *server.Process) error {
	if collections(p) == 0 {
		return nil
	}
	const patience = 4 * time.Minute
	// One that is under way may miss what is garbage only now: its line is printed within this time.
	const underWay = 5 * time.Second
	ctx, cancel := context.WithTimeout(ctx, underWay+patience)
	defer cancel()
	sleep(ctx, underWay)
	for before := collections(p); collections(p) == before; {
		if !sleep(ctx, time.Second) {
			return fmt.Errorf("no collection within %s", patience)
		}
	}
	return nil
}

// collections counts the lines of gctrace, which look like "gc 7 @1.234s 0%: ...".
func collections(p *server.Process) (n int) {
	for line := range strings.Lines(p.Log()) {
		if strings.HasPrefix(line, "gc ") {
			n++
		}
	}
	return n
}

// jvmGC asks the JVM for a full collection, with the JDK's own tool.
func jvmGC(ctx context.Context, p *server.Process) error {
	if out, err := exec.CommandContext(ctx, "jcmd", strconv.Itoa(p.Pid()), "GC.run").CombinedOutput(); err != nil {
		return fmt.Errorf("jcmd GC.run: %w\n%s", err, out)
	}
	return nil
}

// settle collects, then waits until the resident memory changes by less than 1% in ten seconds: a collector gives pages
// back slowly.
func (k *kind) settle(ctx context.Context, p *server.Process) (memory, error) {
	if err := k.collect(ctx, p); err != nil {
		return memory{}, err
	}
	const interval, patience = 10 * time.Second, 30
	last, err := memoryOf(p.Pid())
	for range patience {
		if err != nil {
			return last, err
		}
		if !sleep(ctx, interval) {
			return last, ctx.Err()
		}
		var m memory
		m, err = memoryOf(p.Pid())
		if change := m.rss - last.rss; err == nil && max(change, -change) < m.rss/100 {
			return m, nil
		}
		last = m
	}
	return last, fmt.Errorf("resident memory does not settle")
}

// sleep reports whether d passed before ctx ended.
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
