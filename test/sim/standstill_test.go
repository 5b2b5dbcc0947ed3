package sim

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"
)

// standstills returns the faults that stop a process in the midst of an exchange between members.
func standstills() []*fault {
	return []*fault{
		{name: firstCheckpoint, weight: 12, reconfigures: true, awaited: true, inject: pauseInFirstCheckpoint},
		{name: "pause in a transfer", weight: 6, awaited: true, inject: pauseInTransfer},
		{name: "pause in a reconfig", weight: 6, reconfigures: true, awaited: true, inject: pauseIn("pause in a reconfig", 0, pickReconfig)},
		{name: "pause in a promotion", weight: 6, reconfigures: true, awaited: true, inject: pauseIn("pause in a promotion", 1, changeRole)},
		{name: "pause in leaving", weight: 6, reconfigures: true, awaited: true, inject: pauseIn("pause in leaving", 0, leave)},
		{name: "pause in a backup", weight: 6, awaited: true, inject: pauseInBackup},
	}
}

// fewEntries is the memory of each member in a run with standstills. Of that, consensus keeps
// 64 KiB of entries for members that are away; those that need more get a checkpoint.
const fewEntries = 2 << 20

// A member that is silent for the time of forgotten is no learner any more, unless it is to be a
// member. After another second or two its connections are lost.
const forgotten, disconnected = 3200 * time.Millisecond, 4500 * time.Millisecond

// standstillPatience is how long the moment of a standstill is awaited.
const standstillPatience = 20 * time.Second

// A standstill stops one process when the disk operations of a member, and its writes to other
// members, come to a drawn number.
type standstill struct {
	fault  string
	victim *member
	lasts  time.Duration
	counts func(path string) bool // the path of a disk operation; "": a write to another member
	left   atomic.Int64           // to count
}

// canceled is far from 0 for any number of operations.
const canceled = math.MinInt64 / 2

// drawStandstill draws the member that stops, m or the leader, after how many operations, and for
// how long.
func (n *nemesis) drawStandstill(fault string, m *member, s step) *standstill {
	rng := rand.New(rand.NewPCG(n.w.plan.seed, uint64(s.other)))
	bounds := []time.Duration{0, forgotten, disconnected, 10 * time.Second, 30 * time.Second}
	within := pick(rng, 0, 1, 1, 1, 2, 2, 2, 3)
	t := &standstill{fault: fault, victim: m, lasts: between(rng, bounds[within], bounds[within+1]), counts: func(string) bool { return true }}
	t.left.Store(1 + rng.Int64N(pick[int64](rng, 3, 10, 30, 100)))
	if leader := n.w.leader(); rng.IntN(3) == 0 {
		t.victim = leader
	}
	return t
}

// inTransfer makes t count only what the member does for a checkpoint that it receives.
func (t *standstill) inTransfer() {
	t.counts = func(path string) bool { return strings.Contains(path, ".from-") }
	t.left.Store(1 + t.left.Load()%receiveOperations)
}

// receiveOperations is about how many disk operations a checkpoint takes that is received.
const receiveOperations = 12

// arm makes the standstill happen, unless something is wrong with its victim already.
func (n *nemesis) arm(m *member, t *standstill) {
	if v := t.victim; v.fault != "" || v.life == nil || m.standstill.Load() != nil || n.over {
		return
	}
	t.victim.fault = t.fault
	n.armed++
	m.standstill.Store(t)
	n.healAt(n.w.now()+standstillPatience, func() {
		if t.left.Swap(canceled) > 0 {
			m.standstill.Store(nil)
			t.victim.fault = ""
			n.armed--
		}
	})
}

// count is called before each operation of m that others can notice: on its disk, at path, and on a
// connection to another member.
func (m *member) count(path string) {
	t := m.standstill.Load()
	if t == nil || !t.counts(path) || t.left.Add(-1) != 0 {
		return
	}
	m.standstill.Store(nil)
	t.victim.disk.change(func(f *diskFaults) { f.hung = true })
	t.victim.clock.set(func(c *clock) { c.paused = true })
	m.w.stopped <- t
}

// stop completes a standstill that has begun, and plans its end.
func (n *nemesis) stop(t *standstill) {
	v := t.victim
	n.armed--
	n.w.noteQuiet(false)
	n.freeze(v, true)
	n.counts[t.fault]++
	n.w.logs.Info("FAULT", "kind", t.fault, "member", v.id, "lasts", t.lasts.String())
	n.w.judgeProgress()
	n.healAt(n.w.now()+t.lasts, func() {
		n.w.logs.Info("FAULT ends", "kind", t.fault, "member", v.id)
		v.fault = ""
		n.freeze(v, false)
	})
}

// pauseIn returns the fault that takes a member through stages, with a standstill in one of them.
func pauseIn(kind string, at int, of func(m *member, s step) []*stage) func(*nemesis, *member, step) func() {
	return func(n *nemesis, m *member, s step) func() {
		return stages(kind, func(m *member, s step) []*stage {
			all := of(m, s)
			if len(all) > at {
				all[at].asked = func() { n.arm(m, n.drawStandstill(kind, m, s)) }
			}
			return all
		})(n, m, s)
	}
}

func pickReconfig(m *member, s step) []*stage {
	return []func(*member, step) []*stage{changeRole, remove, replace, movePort, moveClientPort}[s.other/4%5](m, s)
}

const firstCheckpoint = "pause in a first checkpoint"

// pauseInFirstCheckpoint lets a server without data join or, if the members have a secret, follow
// without a reconfig that names it. The server must serve in the end.
func pauseInFirstCheckpoint(n *nemesis, _ *member, s step) func() {
	return stages(firstCheckpoint, func(m *member, s step) (all []*stage) {
		if m.life != nil {
			return nil
		}
		arm := func() { n.armInFirstCheckpoint(m, s) }
		first := &stage{to: voter - role(s.other/4%2), before: m.startEmpty, asked: arm, itself: n.w.plan.modes.secret}
		if guest := s.other/8%4 > 0; !guest || !n.w.plan.modes.secret {
			return []*stage{first, {to: outside, after: m.quit}}
		}
		for range 8 {
			all = append(all, &stage{serves: true, before: m.startEmpty, asked: arm})
		}
		return append(all, &stage{serves: true, after: m.quit})
	})(n, n.w.members[len(n.w.members)-1], s)
}

// armInFirstCheckpoint arms a standstill of a server that has just begun, or of the leader, until
// the server has received its first checkpoint.
func (n *nemesis) armInFirstCheckpoint(m *member, s step) {
	const joined = time.Second // it takes about 300 ms, and longer after an election
	s.other += m.starts
	t, rng := n.drawStandstill(firstCheckpoint, m, s), rand.New(rand.NewPCG(n.w.plan.seed, uint64(s.other)))
	if rng.IntN(3) == 0 {
		t.inTransfer()
		n.arm(m, t)
		return
	}
	t.left.Store(1 + rng.Int64N(3))
	n.healAt(n.w.now()+between(rng, 0, joined), func() { n.arm(m, t) })
}

// pauseInTransfer keeps a member away until it needs a checkpoint.
func pauseInTransfer(n *nemesis, m *member, s step) func() {
	if m.fault != "" || m.life == nil {
		return nil
	}
	m.fault = "down"
	m.kill()
	n.healAt(n.w.now()+time.Duration(10+s.other%40)*time.Second, func() {
		m.fault = ""
		m.start()
		t := n.drawStandstill("pause in a transfer", m, s)
		t.inTransfer()
		n.arm(m, t)
	})
	return func() {}
}

// pauseInBackup copies the state of a member.
func pauseInBackup(n *nemesis, m *member, s step) func() {
	if m.fault != "" || m.life == nil || !m.status().Serving {
		return nil
	}
	const patience = 2 * time.Minute
	n.arm(m, n.drawStandstill("pause in a backup", m, s))
	l, least := m.life, n.w.committed()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	n.w.requests.Go(func() { // ends with ctx, or the server; endAll waits for it
		defer cancel()
		c, err := l.s.Backups().Capture(ctx)
		switch {
		case err == nil && c.Zxid < least:
			n.w.complain("a backup of member %d is as of 0x%x, although 0x%x was committed before", m.id, c.Zxid, least)
		case ctx.Err() != nil && !l.dead.Load() && n.w.quietFor() > patience/4:
			n.w.complain("no backup of member %d: %v", m.id, err)
		}
	})
	return func() {}
}
