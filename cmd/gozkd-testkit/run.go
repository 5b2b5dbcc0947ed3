package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/cmd/gozkd-testkit/internal/faultsapi"
	"github.com/gozkd/gozkd/internal/backoff"
	"github.com/gozkd/gozkd/internal/cluster"
	"github.com/gozkd/gozkd/internal/faultproxy"
)

const (
	// The exit statuses of run that are not the command's, as those of timeout(1). signalled is
	// added to the number of the signal that ended the command.
	notServed, notFound, signalled = 125, 127, 128
	// endTime is how long a command may take to end after run is told to end.
	endTime = 10 * time.Second
)

// execute runs the command of o, as often as o says, each time on new servers, until it fails. It
// returns the exit status.
func execute(ctx context.Context, o *options, in io.Reader, out, errOut io.Writer) (status int) {
	for ; o.runs > 0 && ctx.Err() == nil; o.runs-- {
		err := serve(ctx, o, errOut, func(ctx context.Context, c *cluster.Cluster, f *faultsapi.Server) (err error) {
			status, err = command(ctx, o, c, f, in, out, errOut)
			return err
		})
		if err != nil {
			_, _ = fmt.Fprintf(errOut, "gozkd-testkit: %v\n", err)
			return max(status, notServed)
		}
		if status != 0 {
			break
		}
		o.seed += min(o.seed, 1) // 0 draws nothing
	}
	if status != 0 && o.seed != 0 && ctx.Err() == nil {
		again := slices.Concat(o.flags, []string{"--seed", fmt.Sprint(o.seed), "--"}, o.command)
		for i, word := range again {
			if word == "" || strings.ContainsAny(word, " \t\n'\"\\$`*?[]{}()<>|&;#~!") {
				again[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
			}
		}
		_, _ = fmt.Fprintf(errOut, "gozkd-testkit: exit status %d under the faults of seed %d; "+
			"again: gozkd-testkit run %s\n", status, o.seed, strings.Join(again, " "))
	}
	return status
}

// command runs the command of o beside servers, and returns its exit status.
func command(
	ctx context.Context, o *options, c *cluster.Cluster, f *faultsapi.Server, in io.Reader, out, errOut io.Writer,
) (int, error) {
	for _, spec := range o.faults {
		if err := f.Arm(spec); err != nil {
			return notServed, fmt.Errorf("--fault %s: %w", spec, err)
		}
	}
	cmd := exec.CommandContext(ctx, o.command[0], o.command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, errOut
	cmd.Env = append(os.Environ(), "ZOOKEEPER_CONNECT="+c.ConnectString(), "GOZKD_TESTKIT_FAULTS="+f.URL())
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // Windows has only the end after WaitDelay
	cmd.WaitDelay = endTime
	if err := cmd.Start(); err != nil {
		return notFound, err
	}
	drawing, cancel := context.WithCancel(ctx)
	var drawn sync.WaitGroup
	if o.seed != 0 {
		drawn.Go(func() { draw(drawing, o.seed, c, o.cluster.Logger) })
	}
	_ = cmd.Wait() // its status says more
	cancel()
	drawn.Wait()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return signalled + int(status.Signal()), nil
	}
	return cmd.ProcessState.ExitCode(), nil
}

// disasters are the faults that can be drawn.
var disasters = []string{"kill", "stop", "pause", "partition", "disconnect", "drop reply", "delay", "expire session"}

// draw lets the disasters of a seed happen, one at a time, until ctx ends. A seed says which, to
// whom, for how long, and after which pauses. The times are for sessions of a few seconds.
func draw(ctx context.Context, seed uint64, c *cluster.Cluster, log hclog.Logger) {
	r := rand.New(rand.NewPCG(seed, 0))
	between := func(low, high int) time.Duration { return time.Duration(low+r.IntN(high-low)) * time.Millisecond }
	members := c.Members()
	for {
		pause, length := between(10, 500), between(50, 2000)
		what, m, n := disasters[r.IntN(len(disasters))], members[r.IntN(len(members))], r.IntN(1<<10)
		if !backoff.Sleep(ctx, pause) {
			return
		}
		log.Info("drawn fault", "seed", seed, "fault", what, "member", m.ID())
		if err := strike(ctx, what, c, m, length, n); err != nil && ctx.Err() == nil {
			log.Warn("a drawn fault failed", "seed", seed, "fault", what, "error", err)
		}
	}
}

// strike lets a disaster happen to a member, or to the n-th session, and ends it after a while.
func strike(ctx context.Context, what string, c *cluster.Cluster, m *cluster.Member, length time.Duration, n int) (err error) {
	switch what {
	case "kill":
		err = m.Kill()
	case "stop":
		err = m.Stop()
	case "pause":
		err = m.Pause()
	case "partition":
		err = m.Partition()
	case "disconnect":
		return m.CloseConnections()
	case "drop reply":
		_, err = c.Arm(faultproxy.Fault{Kind: faultproxy.DropReply, Op: faultproxy.OpAny})
		return err
	case "delay":
		_, err = c.Arm(faultproxy.Fault{Kind: faultproxy.Delay, Op: faultproxy.OpAny, Delay: length})
		return err
	case "expire session":
		sessions, err := c.Sessions(ctx)
		if len(sessions) > 0 {
			err = c.ExpireSession(ctx, sessions[n%len(sessions)].ID)
		}
		return err
	}
	backoff.Sleep(ctx, length)
	return errors.Join(err, c.Repair(ctx))
}
