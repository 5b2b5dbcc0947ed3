//go:build linux

package jepsenlite

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/internal/backoff"
	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/server"
)

// An injection is how a fault disturbs the ensemble. It describes the disturbance and returns what
// heals it; nil: the fault is not possible now.
type injection func(ctx context.Context, n *nemesis) (what string, heal healing)

// A healing ends a fault. Only that of a whole fault may wait until members serve.
type healing func(ctx context.Context)

func noHealing(context.Context) {}

// none disturbs nobody: for runs in which only the network of Options does.
func none(context.Context, *nemesis) (string, healing) { return "nobody", noHealing }

// ofAny returns the injection of a fault of any member, and ofLeader of one of the leader.
func ofAny(one func(*nemesis, *Member) (string, healing)) injection {
	return func(_ context.Context, n *nemesis) (string, healing) { return one(n, n.any()) }
}

func ofLeader(one func(*nemesis, *Member) (string, healing)) injection {
	return func(ctx context.Context, n *nemesis) (string, healing) { return one(n, n.leader(ctx)) }
}

// A fault is a way to disturb the ensemble.
type fault struct {
	name   string
	weight int // relative frequency
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
		{name: "disk-hang", weight: 2, longest: 8 * time.Second, loop: true, minority: true, inject: hangDisk},
		{name: KillBurst, weight: 6, longest: 300 * time.Millisecond, alone: true, inject: killBurst},
		{name: "none", weight: 1, longest: 4 * time.Second, minority: true, inject: none},
		{name: "version", weight: 3, longest: 4 * time.Second, previous: true, minority: true, inject: changeVersion},
	}
}

// removeAndAdd removes a member, also the leader, and on heal adds it again without its data.
func removeAndAdd(ctx context.Context, n *nemesis) (string, healing) {
	m := n.any()
	if len(n.cluster.Members) < 3 {
		return "nobody: there are too few", nil
	}
	n.reconfig(ctx, nil, []string{strconv.Itoa(m.ID)})
	return m.String(), func(ctx context.Context) {
		n.cluster.Kill(m) // it may have ended by itself
		m.Wipe()
		n.cluster.writeConfig(m)
		n.cluster.Start(m)
		n.reconfig(ctx, []string{fmt.Sprintf("server.%d=%s", m.ID, n.cluster.ServerLine(m.ID))}, nil)
	}
}

// reconfig asks a serving member until the ensemble has done it. To repeat a request is harmless.
func (n *nemesis) reconfig(ctx context.Context, joining, leaving []string) {
	ctx = context.WithoutCancel(ctx)
	i := 0
	must.Await(ctx, recovery, fmt.Sprintf("reconfig joining %v leaving %v", joining, leaving), func() error {
		m := n.cluster.Members[i%len(n.cluster.Members)]
		i++
		if mode := m.Mode(ctx); mode != ModeLeader && mode != ModeFollower {
			return fmt.Errorf("the mode of %v is %s", m, mode)
		}
		err := reconfigAt(ctx, m.Client, joining, leaving)
		if err != nil {
			n.log.Debug("reconfig again", "error", err)
			backoff.Sleep(ctx, 200*time.Millisecond) // ctx does not end
		}
		return err
	})
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
func isolate(n *nemesis, m *Member) (string, healing) {
	n.cluster.isolate(m)
	return m.String(), n.healLinks
}

// oneWay cuts a member off in one direction.
func oneWay(ctx context.Context, n *nemesis) (string, healing) {
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
	return what, n.healLinks
}

// breakOneLink cuts the link between two members, which both still reach the others.
func breakOneLink(_ context.Context, n *nemesis) (string, healing) {
	a := n.any()
	others := n.others(a)
	if len(others) == 0 {
		return "nobody", nil
	}
	b := others[n.rng.IntN(len(others))]
	n.cluster.Links.Block(a.ID, b.ID)
	n.cluster.Links.Block(b.ID, a.ID)
	return fmt.Sprintf("%v and %v", a, b), n.healLinks
}

// delay makes every direction slow, each by a different time.
func delay(_ context.Context, n *nemesis) (string, healing) {
	const most = 300 * time.Millisecond
	for _, m := range n.cluster.Members {
		for _, o := range n.others(m) {
			n.cluster.Links.Delay(m.ID, o.ID, n.between(0, most))
		}
	}
	return "all", n.healLinks
}

// cutAll breaks all connections between members; they may reconnect at once.
func cutAll(_ context.Context, n *nemesis) (string, healing) {
	for _, m := range n.cluster.Members {
		for _, o := range n.others(m) {
			n.cluster.Links.Cut(m.ID, o.ID)
		}
	}
	return "all", noHealing
}

// healLinks opens all links. Half of the time it breaks the connections: held bytes are lost.
func (n *nemesis) healLinks(ctx context.Context) {
	if n.rng.IntN(2) == 0 {
		cutAll(ctx, n)
	}
	n.cluster.Links.Heal()
}

// killOne kills a member with kill -9 until healed.
func killOne(n *nemesis, m *Member) (string, healing) {
	n.cluster.Kill(m)
	return m.String(), func(context.Context) { n.cluster.Start(m) }
}

// changeVersion kills a member and starts it as the other version.
func changeVersion(_ context.Context, n *nemesis) (string, healing) {
	m := n.any()
	what, heal := killOne(n, m)
	m.product.Command, m.product.Previous = m.product.Previous, m.product.Command
	return what + " becomes " + m.product.Command[0], heal
}

// killAll kills all members at once.
func killAll(_ context.Context, n *nemesis) (string, healing) {
	for _, m := range n.cluster.Members {
		n.cluster.Kill(m)
	}
	return "all", n.startAll
}

// freeze stops a member with SIGSTOP until healed: its connections stay, and its clocks go on.
func freeze(_ *nemesis, m *Member) (string, healing) {
	if !m.Running() {
		return m.String() + ", which does not run", nil
	}
	m.Pause()
	return m.String(), func(context.Context) { m.Resume() }
}

// pauseAll stops all members, as hosts are suspended, for up to longer than the sessions' timeout.
func pauseAll(_ context.Context, n *nemesis) (string, healing) {
	var paused []*Member
	for _, m := range n.cluster.Members {
		if m.Running() {
			m.Pause()
			paused = append(paused, m)
		}
	}
	if n.paused == 0 {
		n.paused = n.rec.Now()
	}
	return "all", func(context.Context) {
		n.endPause()
		for _, m := range paused {
			m.Resume()
		}
	}
}

// wipe empties a member's data directory, starts the member again and waits until it serves. So two
// are never wiped at the same time, which no ensemble survives.
func wipe(_ context.Context, n *nemesis) (string, healing) {
	m := n.any()
	n.cluster.Kill(m)
	m.Wipe()
	n.cluster.Start(m)
	return m.String(), n.awaitServing
}

// rollBack copies the data directory of a stopped member, lets the member take part for a while,
// and restores the directory from the copy: the member no longer has what it acknowledged
// meanwhile.
func rollBack(ctx context.Context, n *nemesis) (string, healing) {
	m := n.any()
	n.cluster.Kill(m)
	m.CopyData()
	n.cluster.Start(m)
	err := must.Try(func() {
		n.awaitServing(ctx)
		must.Sleep(ctx, n.between(500*time.Millisecond, 4*time.Second))
	})
	if err != nil {
		return m.String() + ", not yet restored", n.awaitServing // the round ends
	}
	n.cluster.Kill(m)
	m.RestoreData()
	n.cluster.Start(m)
	return m.String(), n.awaitServing
}

// wipeAndKill cuts a member off, so that writes are acknowledged without it, empties another, kills
// a third, and reconnects the first two. They are a majority of three without the last writes, and
// must wait for the third.
func wipeAndKill(ctx context.Context, n *nemesis) (string, healing) {
	emptied := n.any()
	others := n.others(emptied)
	if len(others) < 2 {
		return "nobody: there are too few", nil
	}
	n.rng.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	late, killed := others[0], others[1]
	heal := func(ctx context.Context) {
		n.cluster.Links.Heal()
		n.awaitServing(ctx)
	}
	n.cluster.isolate(late)
	if !backoff.Sleep(ctx, n.between(500*time.Millisecond, 3*time.Second)) {
		return "nobody: the round ends", heal
	}
	n.cluster.Kill(emptied)
	n.cluster.Kill(killed)
	emptied.Wipe()
	cutAll(ctx, n) // held bytes are lost
	n.cluster.Links.Heal()
	n.cluster.Start(emptied)
	return fmt.Sprintf("%v late, %v emptied, %v killed", late, emptied, killed), heal
}

// diskReserve is what gozkd wants free on a small disk: with less, all members refuse growth.
const diskReserve = 64 << 20

// fillDisk fills the last member's disk except for a spare. Without a spare that may stop the
// member. gozkd must then go on by itself when there is room. Other products are restarted, as an
// operator would do, also if they have survived.
func fillDisk(spare int64) injection {
	return func(_ context.Context, n *nemesis) (string, healing) {
		m := n.cluster.Members[len(n.cluster.Members)-1]
		m.FillDisk(spare)
		return m.String(), func(context.Context) {
			m.FreeDisk()
			switch {
			case spare > 0:
			case n.cluster.cfg.Product.Name != Gozkd || n.cluster.cfg.Product.Previous != nil:
				n.cluster.Kill(m)
				n.cluster.Start(m)
			case !m.Running() && !m.killed:
				must.Failf("%w: %v has ended because of its full disk, see %s", errUnrecovered, m, m.LogPath())
			}
		}
	}
}
