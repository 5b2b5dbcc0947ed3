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

// killOne kills a member with kill -9 until healed.
func killOne(n *nemesis, m *Member) (string, func(context.Context) error, error) {
	return m.String(), func(context.Context) error { return n.cluster.Start(m) }, n.cluster.Kill(m)
}

// killAll kills all members at once.
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

// freeze stops a member with SIGSTOP until healed: its connections stay, and its clocks go on.
func freeze(m *Member) (string, func(context.Context) error, error) {
	if !m.Running() {
		return m.String() + ", which does not run", nil, nil
	}
	return m.String(), func(context.Context) error { return m.Resume() }, m.Pause()
}

// wipe empties a member's data directory, starts the member again and waits until it serves. So two
// are never wiped at the same time, which no ensemble survives.
func wipe(_ context.Context, n *nemesis) (string, func(context.Context) error, error) {
	m := n.any()
	heal := func(ctx context.Context) error { return n.awaitServing(ctx) }
	return m.String(), heal, errors.Join(n.cluster.Kill(m), m.Wipe(), n.cluster.Start(m))
}

// rollBack copies the data directory of a stopped member, lets the member take part for a while, and
// restores the directory from the copy: the member no longer has what it acknowledged meanwhile.
func rollBack(ctx context.Context, n *nemesis) (string, func(context.Context) error, error) {
	m := n.any()
	heal := func(ctx context.Context) error { return n.awaitServing(ctx) }
	if err := errors.Join(n.cluster.Kill(m), m.CopyData(), n.cluster.Start(m)); err != nil {
		return m.String(), heal, err
	}
	if err := errors.Join(n.awaitServing(ctx), pause(ctx, n.between(500*time.Millisecond, 4*time.Second))); err != nil {
		return m.String() + ", not yet restored", heal, nil // the round ends
	}
	return m.String(), heal, errors.Join(n.cluster.Kill(m), m.RestoreData(), n.cluster.Start(m))
}

// wipeAndKill cuts a member off, so that writes are acknowledged without it, empties another, kills
// a third, and reconnects the first two. They are a majority of three without the last writes, and
// must wait for the third.
func wipeAndKill(ctx context.Context, n *nemesis) (string, func(context.Context) error, error) {
	emptied := n.any()
	others := n.others(emptied)
	if len(others) < 2 {
		return "nobody: there are too few", nil, nil
	}
	n.rng.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	late, killed := others[0], others[1]
	heal := func(ctx context.Context) error {
		n.cluster.Links.Heal()
		return n.awaitServing(ctx)
	}
	if _, _, err := isolate(n, late); err != nil {
		return late.String(), heal, err
	}
	if err := pause(ctx, n.between(500*time.Millisecond, 3*time.Second)); err != nil {
		return "nobody: the round ends", heal, nil
	}
	err := errors.Join(n.cluster.Kill(emptied), n.cluster.Kill(killed), emptied.Wipe())
	if _, _, cutErr := cutAll(ctx, n); cutErr != nil {
		err = errors.Join(err, cutErr) // held bytes are lost
	}
	n.cluster.Links.Heal()
	what := fmt.Sprintf("%v late, %v emptied, %v killed", late, emptied, killed)
	return what, heal, errors.Join(err, n.cluster.Start(emptied))
}

// fillDisk fills the last member's disk, which may end the member. Heal restarts it.
func fillDisk(_ context.Context, n *nemesis) (string, func(context.Context) error, error) {
	m := n.cluster.Members[len(n.cluster.Members)-1]
	heal := func(context.Context) error {
		if err := m.FreeDisk(); err != nil {
			return err
		}
		// A member that survived is restarted too, as an operator would do.
		return errors.Join(n.cluster.Kill(m), n.cluster.Start(m))
	}
	return m.String(), heal, m.FillDisk()
}
