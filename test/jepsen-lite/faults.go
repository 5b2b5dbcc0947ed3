//go:build linux

package jepsenlite

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/test/compat/server"
)

// An injection is how a fault disturbs the ensemble.
type injection func(ctx context.Context, n *nemesis) (what string, heal func(context.Context) error, err error)

// ofAny returns the injection of a fault that any member may have, and ofLeader of one that the
// leader has.
func ofAny(one func(*nemesis, *Member) (string, func(context.Context) error, error)) injection {
	return func(_ context.Context, n *nemesis) (string, func(context.Context) error, error) {
		return one(n, n.any())
	}
}

func ofLeader(one func(*nemesis, *Member) (string, func(context.Context) error, error)) injection {
	return func(ctx context.Context, n *nemesis) (string, func(context.Context) error, error) {
		return one(n, n.leader(ctx))
	}
}

// A fault is a way to disturb the ensemble.
type fault struct {
	name   string
	weight int // relative frequency
	// inject disturbs the ensemble and returns a description and the function that heals it,
	// possibly along with an error. Only the heal of a whole fault may wait until members serve:
	// another fault may still disturb them.
	inject injection
	// longest bounds its duration.
	longest time.Duration
	// whole: only when every member serves, and the next fault only when they serve again. For
	// faults that take disks, of which a majority must never be lost.
	whole bool
	// minority: disturbs at most one member or link, so that a majority of three is well.
	minority bool
	// strict: beyond ZooKeeper's promises but within gozkd's; used on gozkd by default.
	strict bool
	// small: needs the member with the small disk.
	small bool
	// loop: needs members with loop disks.
	loop bool
	// alone: of a standalone server.
	alone bool
	// previous: needs Product.Previous.
	previous bool
}

// faults returns all kinds of faults.
func faults() []fault {
	return []fault{
		{name: "kill", weight: 3, longest: 4 * time.Second, minority: true, inject: ofAny(killOne)},
		{name: "kill-leader", weight: 3, longest: 4 * time.Second, minority: true, inject: ofLeader(killOne)},
		{name: "restart-all", weight: 1, longest: 2 * time.Second, inject: killAll},
		{name: "pause", weight: 2, longest: 6 * time.Second, minority: true, inject: ofAny(freeze)},
		{name: "pause-leader", weight: 2, longest: 6 * time.Second, minority: true, inject: ofLeader(freeze)},
		{name: "pause-all", weight: 1, longest: 14 * time.Second, strict: true, inject: pauseAll},
		{name: "partition", weight: 2, longest: 6 * time.Second, minority: true, inject: ofAny(isolate)},
		{name: "partition-leader", weight: 2, longest: 6 * time.Second, minority: true, inject: ofLeader(isolate)},
		{name: "one-way", weight: 2, longest: 6 * time.Second, minority: true, inject: oneWay},
		{name: "ring", weight: 1, longest: 6 * time.Second, minority: true, inject: breakOneLink},
		{name: "delay", weight: 2, longest: 6 * time.Second, inject: delay},
		{name: "cut", weight: 1, longest: time.Second, inject: cutAll},
		{name: "wipe", weight: 1, longest: 3 * time.Second, whole: true, inject: wipe},
		{name: "wipe-and-kill", weight: 1, longest: 5 * time.Second, whole: true, strict: true, inject: wipeAndKill},
		{name: "roll-back", weight: 1, longest: 3 * time.Second, whole: true, inject: rollBack},
		{name: "reconfig", weight: 1, longest: 3 * time.Second, whole: true, inject: removeAndAdd},
		{name: "disk-full", weight: 1, longest: 5 * time.Second, small: true, minority: true, inject: fillDisk(0)},
		{name: "disk-low", weight: 1, longest: 5 * time.Second, small: true, minority: true, strict: true, inject: fillDisk(diskReserve / 2)},
		{name: OutageDiskHang, weight: 2, longest: 8 * time.Second, loop: true, minority: true, inject: hangDisk},
		{name: KillBurst, weight: 6, longest: 300 * time.Millisecond, alone: true, inject: killBurst},
		{name: "version", weight: 3, longest: 4 * time.Second, previous: true, minority: true, inject: changeVersion},
	}
}

// removeAndAdd removes a member, the leader too, and on heal adds it again with an empty data
// directory.
func removeAndAdd(ctx context.Context, n *nemesis) (string, func(context.Context) error, error) {
	m := n.any()
	if len(n.cluster.Members) < 3 {
		return "nobody: there are too few", nil, errImpossible
	}
	err := n.reconfig(ctx, nil, []string{strconv.Itoa(m.ID)})
	heal := func(ctx context.Context) error {
		// The removed member may have ended by itself.
		err := errors.Join(n.cluster.Kill(m), m.Wipe(), n.cluster.writeConfig(m), n.cluster.Start(m))
		if err != nil {
			return err
		}
		line := fmt.Sprintf("server.%d=%s", m.ID, n.cluster.ServerLine(m.ID))
		return n.reconfig(ctx, []string{line}, nil)
	}
	return m.String(), heal, err
}

// reconfig asks a serving member until the ensemble has done it. Repeating a request without a
// reply is harmless.
func (n *nemesis) reconfig(ctx context.Context, joining, leaving []string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recovery)
	defer cancel()
	var last error
	for i := 0; ctx.Err() == nil; i++ {
		m := n.cluster.Members[i%len(n.cluster.Members)]
		if mode := m.Mode(ctx); mode != ModeLeader && mode != ModeFollower {
			last = errors.Join(last, pause(ctx, 50*time.Millisecond))
			continue
		}
		if last = reconfigAt(ctx, m.Client, joining, leaving); last == nil {
			return nil
		}
		n.log.Debug("reconfig again", "error", last)
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return errors.Join(last, err)
		}
	}
	return fmt.Errorf("jepsenlite: reconfig joining %v leaving %v: %w", joining, leaving, last)
}

func reconfigAt(ctx context.Context, address string, joining, leaving []string) error {
	c, err := connect(NewRecorder(), "reconfig", []string{address}, 0, sessionTimeout)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, sessionTimeout)
	defer cancel()
	if err := c.await(ctx); err != nil {
		return err
	}
	if err := c.AddAuth("digest", []byte("super:"+server.SuperPassword)); err != nil {
		return err
	}
	const anyVersion = -1
	_, err = c.IncrementalReconfig(joining, leaving, anyVersion)
	if errors.Is(err, zk.ErrConnectionClosed) {
		return fmt.Errorf("outcome unknown: %w", err)
	}
	return err
}

// isolate cuts a member off from all others.
func isolate(n *nemesis, m *Member) (string, func(context.Context) error, error) {
	n.cluster.isolate(m)
	return m.String(), n.healLinks, nil
}

// oneWay cuts a member off in one direction.
func oneWay(ctx context.Context, n *nemesis) (string, func(context.Context) error, error) {
	m := n.any()
	if n.rng.IntN(2) == 0 {
		m = n.leader(ctx)
	}
	what := m.String() + " is not heard"
	deaf := n.rng.IntN(2) == 0
	if deaf {
		what = m.String() + " hears nobody"
	}
	for _, o := range n.others(m) {
		if deaf {
			n.cluster.Links.Block(o.ID, m.ID)
		} else {
			n.cluster.Links.Block(m.ID, o.ID)
		}
	}
	return what, n.healLinks, nil
}

// breakOneLink cuts the link between two members, which both still reach the others.
func breakOneLink(_ context.Context, n *nemesis) (string, func(context.Context) error, error) {
	a := n.any()
	others := n.others(a)
	if len(others) == 0 {
		return "nobody", nil, errImpossible
	}
	b := others[n.rng.IntN(len(others))]
	n.cluster.Links.Block(a.ID, b.ID)
	n.cluster.Links.Block(b.ID, a.ID)
	return fmt.Sprintf("%v and %v", a, b), n.healLinks, nil
}

// delay makes every direction slow, each by a different time.
func delay(_ context.Context, n *nemesis) (string, func(context.Context) error, error) {
	const most = 300 * time.Millisecond
	for _, m := range n.cluster.Members {
		for _, o := range n.others(m) {
			n.cluster.Links.Delay(m.ID, o.ID, n.between(0, most))
		}
	}
	return "all", n.healLinks, nil
}

// cutAll breaks all connections between members; they may reconnect at once.
func cutAll(_ context.Context, n *nemesis) (string, func(context.Context) error, error) {
	for _, m := range n.cluster.Members {
		for _, o := range n.others(m) {
			n.cluster.Links.Cut(m.ID, o.ID)
		}
	}
	return "all", nil, nil
}

// healLinks opens all links. Half of the time it also breaks the connections: held bytes are lost
// then.
func (n *nemesis) healLinks(ctx context.Context) error {
	if n.rng.IntN(2) == 0 {
		if _, _, err := cutAll(ctx, n); err != nil {
			return err
		}
	}
	n.cluster.Links.Heal()
	return nil
}

// killOne kills a member with kill -9 until healed.
func killOne(n *nemesis, m *Member) (string, func(context.Context) error, error) {
	return m.String(), func(context.Context) error { return n.cluster.Start(m) }, n.cluster.Kill(m)
}

// changeVersion kills a member and starts it as the other version.
func changeVersion(_ context.Context, n *nemesis) (string, func(context.Context) error, error) {
	m := n.any()
	what, heal, err := killOne(n, m)
	m.product.Command, m.product.Previous = m.product.Previous, m.product.Command
	return what + " becomes " + m.product.Command[0], heal, err
}

// killAll kills all members at once.
func killAll(_ context.Context, n *nemesis) (string, func(context.Context) error, error) {
	var errs []error
	for _, m := range n.cluster.Members {
		errs = append(errs, n.cluster.Kill(m))
	}
	return "all", n.startAll, errors.Join(errs...)
}

// freeze stops a member with SIGSTOP until healed: its connections stay, and its clocks go on.
func freeze(_ *nemesis, m *Member) (string, func(context.Context) error, error) {
	if !m.Running() {
		return m.String() + ", which does not run", nil, errImpossible
	}
	return m.String(), func(context.Context) error { return m.Resume() }, m.Pause()
}

// pauseAll stops all members with SIGSTOP for up to longer than the sessions' timeout, as when
// their hosts are suspended.
func pauseAll(_ context.Context, n *nemesis) (string, func(context.Context) error, error) {
	var errs, resumeErrs []error
	var paused []*Member
	for _, m := range n.cluster.Members {
		if m.Running() {
			errs, paused = append(errs, m.Pause()), append(paused, m)
		}
	}
	if n.paused == 0 {
		n.paused = n.rec.Now()
	}
	heal := func(context.Context) error {
		n.endPause()
		for _, m := range paused {
			resumeErrs = append(resumeErrs, m.Resume())
		}
		return errors.Join(resumeErrs...)
	}
	return "all", heal, errors.Join(errs...)
}

// wipe empties a member's data directory, starts the member again and waits until it serves. So two
// are never wiped at the same time, which no ensemble survives.
func wipe(_ context.Context, n *nemesis) (string, func(context.Context) error, error) {
	m := n.any()
	heal := func(ctx context.Context) error { return n.awaitServing(ctx) }
	return m.String(), heal, errors.Join(n.cluster.Kill(m), m.Wipe(), n.cluster.Start(m))
}

// rollBack copies the data directory of a stopped member, lets the member take part for a while,
// and restores the directory from the copy: the member no longer has what it acknowledged
// meanwhile.
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
		return "nobody: there are too few", nil, errImpossible
	}
	n.rng.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	late, killed := others[0], others[1]
	heal := func(ctx context.Context) error {
		n.cluster.Links.Heal()
		return n.awaitServing(ctx)
	}
	n.cluster.isolate(late)
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

// diskReserve is what gozkd wants free on a small disk: with less, all members refuse growth.
const diskReserve = 64 << 20

// fillDisk fills the last member's disk except for a spare. Without a spare that may end the
// member, and heal restarts it, as an operator would do, also if it has survived.
func fillDisk(spare int64) injection {
	return func(_ context.Context, n *nemesis) (string, func(context.Context) error, error) {
		m := n.cluster.Members[len(n.cluster.Members)-1]
		heal := func(context.Context) error {
			if err := m.FreeDisk(); err != nil || spare > 0 {
				return err
			}
			return errors.Join(n.cluster.Kill(m), n.cluster.Start(m))
		}
		return m.String(), heal, m.FillDisk(spare)
	}
}
