package sim

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	jepsenlite "github.com/gozkd/gozkd/test/jepsen-lite"
)

// fault is a kind of fault.
type fault struct {
	name   string
	weight int
	// reconfigures: it changes the members of the ensemble.
	reconfigures bool
	// awaited: it has happened when a standstill begins.
	awaited bool
	// inject begins the fault, and returns what ends it, or nil if it is not possible now.
	inject func(n *nemesis, m *member, s step) (heal func())
}

// faults returns all kinds.
func faults() []*fault {
	return append([]*fault{
		{name: "power loss", weight: 4, inject: single("down", (*member).powerLoss, (*member).start)},
		{name: "kill", weight: 3, inject: single("down", (*member).kill, (*member).start)},
		{name: "stop", weight: 1, inject: single("down", (*member).stop, (*member).start)},
		{name: "power loss of all", weight: 1, inject: all((*member).powerLoss)},
		{name: "kill of all", weight: 1, inject: all((*member).kill)},
		{name: "isolate", weight: 3, inject: isolate(true, true)},
		{name: "mute", weight: 2, inject: isolate(true, false)},
		{name: "deafen", weight: 2, inject: isolate(false, true)},
		{name: "split", weight: 2, inject: split},
		{name: "ring", weight: 1, inject: ring},
		{name: "slow link", weight: 2, inject: slowLink},
		{name: "bad network", weight: 2, inject: badNetwork},
		{name: "tear", weight: 2, inject: tear},
		{name: "client cut", weight: 2, inject: clientCut},
		{name: "damaged byte", weight: 1, inject: damagedByte},
		{name: "impostor", weight: 1, inject: impersonate},
		{name: "slow disk", weight: 2, inject: onDisk("slow disk", func(f *diskFaults, s step) { f.slow = time.Duration(1+s.other%400) * time.Millisecond })},
		{name: "disk of 1 MB/s", weight: 1, inject: onDisk("disk of 1 MB/s", func(f *diskFaults, _ step) { f.rate = 1e6 })},
		{name: "little memory", weight: 3, inject: press((*room).takeMemory)},
		{name: "little disk", weight: 2, inject: press((*room).takeDisk)},
		{name: "disk full for all", weight: 1, inject: fullForAll},
		{name: "disk full", weight: 1, inject: onDisk("disk full", func(f *diskFaults, _ step) { f.full = true })},
		{name: "EIO on write", weight: 1, inject: onDisk("EIO on write", func(f *diskFaults, _ step) { f.writes = true })},
		{name: "EIO at start", weight: 1, inject: eioAtStart},
		{name: "hung disk", weight: 3, inject: onDisk("hung disk", func(f *diskFaults, _ step) { f.hung = true })},
		{name: "hung disk and power loss", weight: 1, inject: hungAndLost},
		{name: "power loss at an operation", weight: 3, inject: lostAtOperation},
		{name: "clock jump", weight: 2, inject: clockJump},
		{name: "emptied disk", weight: 3, inject: emptied},
		{name: "rolled back", weight: 3, inject: rolledBack},
		{name: "removed directory", weight: 2, inject: removedDirectory},
		{name: "pause", weight: 2, inject: pause},
		{name: "pause of all", weight: 1, inject: pauseAll},
	}, append(reconfigurations(), standstills()...)...)
}

// single takes a member down.
func single(name string, begin, end func(*member)) func(*nemesis, *member, step) func() {
	return func(_ *nemesis, m *member, _ step) func() {
		if m.fault != "" || m.life == nil {
			return nil
		}
		m.fault = name
		begin(m)
		return func() {
			m.fault = ""
			end(m)
		}
	}
}

// all takes down all members that suffer nothing else.
func all(begin func(*member)) func(*nemesis, *member, step) func() {
	return func(n *nemesis, _ *member, _ step) func() {
		var hit []*member
		for _, m := range n.w.members {
			if m.fault == "" && m.life != nil {
				m.fault = "down"
				begin(m)
				hit = append(hit, m)
			}
		}
		return func() {
			for _, m := range hit {
				m.fault = ""
				m.start()
			}
		}
	}
}

func isolate(out, in bool) func(*nemesis, *member, step) func() {
	return func(n *nemesis, m *member, _ step) func() {
		change := func(on bool) {
			for _, other := range n.w.others(m) {
				if out {
					n.w.cut(m.host(), other, on)
				}
				if in {
					n.w.cut(other, m.host(), on)
				}
			}
		}
		change(true)
		return func() { change(false) }
	}
}

// split divides the members into two groups.
func split(n *nemesis, _ *member, s step) func() {
	var apart []link
	for _, a := range n.w.members {
		for _, b := range n.w.members {
			if s.other>>a.id&1 != s.other>>b.id&1 {
				apart = append(apart, link{a.host(), b.host()})
			}
		}
	}
	if apart == nil {
		return nil // a group is empty
	}
	change := func(on bool) {
		for _, l := range apart {
			n.w.cut(l.from, l.to, on)
		}
	}
	change(true)
	return func() { change(false) }
}

// ring leaves each member its two neighbours, or with three members one of them less.
func ring(n *nemesis, _ *member, s step) func() {
	size := len(n.w.members)
	change := func(on bool) {
		for i, a := range n.w.members {
			for j, b := range n.w.members {
				next := (i+1)%size == j || (j+1)%size == i
				if size == 3 { // a chain
					next = i != s.other%3 && j != s.other%3 || i == (s.other+1)%3 || j == (s.other+1)%3
				}
				if i != j && !next {
					n.w.cut(a.host(), b.host(), on)
				}
			}
		}
	}
	change(true)
	return func() { change(false) }
}

func slowLink(n *nemesis, m *member, s step) func() {
	if m.fault != "" {
		return nil
	}
	m.fault = "slow link"
	d := time.Duration(1+s.other%300) * time.Millisecond
	change := func(on bool) {
		for _, other := range n.w.others(m) {
			n.w.delay(m.host(), other, on, d)
			n.w.delay(other, m.host(), on, d)
		}
	}
	change(true)
	return func() { m.fault = ""; change(false) }
}

// badNetwork gives all links between members a round trip of 200 ms and a loss of 2 %.
func badNetwork(n *nemesis, _ *member, s step) func() {
	if n.w.lossy.Swap(true) {
		return nil
	}
	stop := make(chan struct{})
	var links sync.WaitGroup
	for i, m := range n.w.members {
		for j, other := range n.w.others(m) {
			rng := rand.New(rand.NewPCG(n.w.plan.seed, uint64(s.other<<8+i<<4+j)))
			links.Go(func() { n.w.lose(m.host(), other, rng, stop) }) // stopped and awaited when the fault ends
		}
	}
	return func() {
		close(stop)
		links.Wait()
		n.w.mu.Lock()
		n.w.goodFrom = -1 // from now on, a write takes less
		n.w.mu.Unlock()
		n.w.lossy.Store(false)
	}
}

// lose delays what is sent in each slot of time with a probability of 2 %, since TCP sends a lost
// packet again after a timeout, which doubles each time.
func (w *world) lose(from, to string, rng *rand.Rand, stop <-chan struct{}) {
	const slot, oneWay, timeout = 20 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond
	defer w.network.Delay(from, to, 0)
	for {
		good, late := slot, oneWay+timeout
		for rng.IntN(50) > 0 {
			good += slot
		}
		for again := 2 * timeout; rng.IntN(50) == 0; again *= 2 {
			late += again
		}
		for _, next := range []struct{ delay, lasts time.Duration }{{oneWay, good}, {late, slot}} {
			w.network.Delay(from, to, next.delay)
			select {
			case <-time.After(next.lasts):
			case <-stop:
				return
			}
		}
	}
}

// tear breaks connections at once.
func tear(n *nemesis, m *member, s step) func() {
	with := ""
	if s.other%2 == 0 {
		with = n.w.members[s.other/2%len(n.w.members)].host()
	}
	if with == m.host() {
		return nil
	}
	n.w.network.Tear(m.host(), with)
	return func() {}
}

func clientCut(n *nemesis, m *member, s step) func() {
	hosts := n.w.everyone(m)
	client := hosts[len(hosts)-1-s.other%clientHosts]
	n.w.cut(client, m.host(), true)
	n.w.cut(m.host(), client, true)
	return func() {
		n.w.cut(client, m.host(), false)
		n.w.cut(m.host(), client, false)
	}
}

func damagedByte(n *nemesis, m *member, s step) func() {
	n.w.damage[m.id].Store(uint32(1 + s.other))
	return func() {}
}

// onDisk makes something wrong with a disk.
func onDisk(name string, wrong func(*diskFaults, step)) func(*nemesis, *member, step) func() {
	return func(_ *nemesis, m *member, s step) func() {
		if m.fault != "" {
			return nil
		}
		m.fault = name
		m.disk.change(func(f *diskFaults) { wrong(f, s) })
		return func() {
			m.disk.change(func(f *diskFaults) { *f = diskFaults{} })
			if m.life == nil && m.role != outside || m.life != nil && m.life.problem() != nil { // the operator notices
				m.kill()
				m.start()
			}
			m.fault = ""
		}
	}
}

// fullForAll fills the disks of all members that suffer nothing else.
func fullForAll(n *nemesis, _ *member, s step) func() {
	var heals []func()
	for _, m := range n.w.members {
		if heal := onDisk("disk full", func(f *diskFaults, _ step) { f.full = true })(n, m, s); heal != nil {
			heals = append(heals, heal)
		}
	}
	if heals == nil {
		return nil
	}
	return func() {
		for _, heal := range heals {
			heal()
		}
	}
}

// eioAtStart lets a member start while its disk can't be read.
func eioAtStart(_ *nemesis, m *member, _ step) func() {
	if m.fault != "" || m.life == nil {
		return nil
	}
	m.fault = "EIO at start"
	m.kill()
	m.disk.change(func(f *diskFaults) { f.reads = true })
	m.start()
	return func() {
		m.disk.change(func(f *diskFaults) { f.reads = false })
		m.kill()
		m.start()
		m.fault = ""
	}
}

// hungAndLost ends a hang by a power loss.
func hungAndLost(_ *nemesis, m *member, _ step) func() {
	if m.fault != "" || m.life == nil {
		return nil
	}
	m.fault = "hung disk"
	m.disk.change(func(f *diskFaults) { f.hung = true })
	return func() {
		m.powerLoss()
		m.disk.change(func(f *diskFaults) { *f = diskFaults{} })
		m.start()
		m.fault = ""
	}
}

// lostAtOperation stops a disk before a certain operation, and then ends that by a power loss.
func lostAtOperation(n *nemesis, m *member, s step) func() {
	heal := hungAndLost(n, m, s)
	if heal != nil {
		m.disk.change(func(f *diskFaults) { f.hung, f.hangAfter = false, 1+s.other%300 })
	}
	return heal
}

// clockJump steps a wall clock for a while.
func clockJump(_ *nemesis, m *member, s step) func() {
	if m.fault != "" {
		return nil
	}
	m.fault = "clock"
	step := time.Duration(s.other%7200-3600) * time.Second
	m.clock.set(func(c *clock) { c.step += step })
	return func() {
		m.fault = ""
		m.clock.set(func(c *clock) { c.step -= step })
	}
}

// alone reports whether nothing else is wrong. What takes a member's data may happen only then, and
// is over before the next fault.
func (n *nemesis) alone() bool { return len(n.heals) == 0 && n.w.whole() }

// emptied replaces a disk by an empty one.
func emptied(n *nemesis, m *member, s step) func() {
	if m.role != voter || !n.alone() {
		return nil
	}
	m.fault, m.doubtful = "emptied", true
	m.powerLoss()
	m.disk.replace(newDisk().mem)
	m.lines = n.w.lines()
	n.letIn(m, s.lasts)
	return func() {}
}

// rolledBack replaces the content of a disk by an old copy.
func rolledBack(n *nemesis, m *member, s step) func() {
	if m.role != voter || !n.alone() {
		return nil
	}
	m.fault = "rolled back"
	old := m.disk.copy()
	n.until(n.w.now() + time.Duration(1+s.other%20)*time.Second)
	m.doubtful = true
	m.kill()
	m.disk.replace(old)
	n.letIn(m, s.lasts)
	return func() {}
}

// removedDirectory removes the data directory of a member that runs. The member must notice, and
// end by itself.
func removedDirectory(n *nemesis, m *member, s step) func() {
	const patience = 6 * time.Second
	if m.role != voter || !n.alone() {
		return nil
	}
	m.fault, m.doubtful = "without a directory", true
	starts := m.starts
	m.lines = n.w.lines()
	m.disk.removeData()
	n.until(n.w.now() + patience) // restarts it when it has ended
	if m.starts == starts {
		n.w.complain("member %d goes on %v after its directory was removed", m.id, patience)
		m.kill()
	}
	n.letIn(m, s.lasts)
	return func() {}
}

// letIn starts a member that has lost data, after a while, and waits until it votes.
func (n *nemesis) letIn(m *member, after time.Duration) {
	const patience = time.Minute
	n.until(n.w.now() + after)
	m.start()
	end := n.w.now() + patience
	for !n.w.whole() {
		if n.w.now() > end {
			n.w.complain("member %d, which was %s, is not a voter again after %v", m.id, m.fault, patience)
			break
		}
		time.Sleep(100 * time.Millisecond)
		n.operate()
		n.w.judgeProgress()
	}
	m.fault, m.doubtful = "", false
}

// pause stops all that a process does, and lets everything go on at once.
func pause(n *nemesis, m *member, _ step) func() {
	if m.fault != "" || m.life == nil {
		return nil
	}
	m.fault = "paused"
	n.freeze(m, true)
	return func() {
		m.fault = ""
		n.freeze(m, false)
	}
}

func pauseAll(n *nemesis, _ *member, _ step) func() {
	var hit []*member
	for _, m := range n.w.members {
		if m.fault == "" && m.life != nil {
			m.fault = "paused"
			n.freeze(m, true)
			hit = append(hit, m)
		}
	}
	begun := n.w.rec.Now()
	whole := !slices.ContainsFunc(n.w.members, func(m *member) bool {
		return m.home != outside && !slices.Contains(hit, m) || m.life != nil && m.fault != "paused"
	})
	return func() {
		if whole {
			n.w.rec.Note(jepsenlite.KindPause, begun)
		}
		for _, m := range hit {
			m.fault = ""
			n.freeze(m, false)
		}
	}
}

// freeze freezes a process, or ends that: its disk and its network hold what it does, and its clock
// does not answer. Timers of its runtime that need neither run on.
func (n *nemesis) freeze(m *member, on bool) {
	for _, other := range n.w.everyone(m) {
		n.w.cut(m.host(), other, on)
		n.w.cut(other, m.host(), on)
	}
	m.disk.change(func(f *diskFaults) { f.hung = on })
	m.clock.set(func(c *clock) { c.paused = on })
}
