//go:build linux

package jepsenlite

import (
	"context"
	"errors"
	"fmt"
	"time"
)

func killAny(_ context.Context, n *nemesis) (string, func(context.Context) error, error) {
	return killOne(n, n.any())
}

func killLeader(ctx context.Context, n *nemesis) (string, func(context.Context) error, error) {
	return killOne(n, n.leader(ctx))
}

// killOne ends a member with kill -9 until it is healed.
func killOne(n *nemesis, m *Member) (string, func(context.Context) error, error) {
	return m.String(), func(context.Context) error { return n.cluster.Start(m) }, n.cluster.Kill(m)
}

// killAll ends all members at once.
func killAll(_ context.Context, n *nemesis) (string, func(context.Context) error, error) {
	var errs []error
	for _, m := range n.cluster.Members {
		errs = append(errs, n.cluster.Kill(m))
	}
	return "all", n.startAll, errors.Join(errs...)
}

func pauseAny(_ context.Context, n *nemesis) (string, func(context.Context) error, error) {
	return freeze(n.any())
}

func pauseLeader(ctx context.Context, n *nemesis) (string, func(context.Context) error, error) {
	return freeze(n.leader(ctx))
}

// freeze stops a member with SIGSTOP until it is healed: its connections stay, and its clocks go on.
func freeze(m *Member) (string, func(context.Context) error, error) {
	if !m.Running() {
		return m.String() + ", which does not run", nil, nil
	}
	return m.String(), func(context.Context) error { return m.Resume() }, m.Pause()
}

// wipe empties the data directory of a member and starts it again at once, and waits until it serves: so it never happens
// to two at the same time, which nobody could survive.
func wipe(_ context.Context, n *nemesis) (string, func(context.Context) error, error) {
	m := n.any()
	heal := func(ctx context.Context) error { return n.awaitServing(ctx) }
	return m.String(), heal, errors.Join(n.cluster.Kill(m), m.Wipe(), n.cluster.Start(m))
}

// wipeAndKill is wipe, and kill -9 of another member right after: the emptied one must not help the third to decide
// anything, because it may have promised, and forgotten, what the killed one knows.
func wipeAndKill(ctx context.Context, n *nemesis) (string, func(context.Context) error, error) {
	m := n.any()
	others := n.others(m)
	if len(others) == 0 {
		return "nobody", nil, nil
	}
	o := others[n.rng.IntN(len(others))]
	heal := func(ctx context.Context) error { return n.awaitServing(ctx) }
	err := errors.Join(n.cluster.Kill(m), m.Wipe(), n.cluster.Start(m), pause(ctx, n.between(0, 300*time.Millisecond)))
	if ctx.Err() != nil {
		return m.String(), heal, nil // the round ends: it is a wipe only
	}
	return fmt.Sprintf("%v emptied, %v killed", m, o), heal, errors.Join(err, n.cluster.Kill(o))
}

// fillDisk takes the space on the disk of the last member, which ends it, or not; when it is healed, it runs again.
func fillDisk(_ context.Context, n *nemesis) (string, func(context.Context) error, error) {
	m := n.cluster.Members[len(n.cluster.Members)-1]
	heal := func(context.Context) error {
		if err := m.FreeDisk(); err != nil {
			return err
		}
		// A member that goes on although it could not write is started again: that is how an operator would mend it.
		return errors.Join(n.cluster.Kill(m), n.cluster.Start(m))
	}
	return m.String(), heal, m.FillDisk()
}
