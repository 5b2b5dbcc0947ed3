package sim

import (
	"os"
	"runtime"
	"slices"
	"time"
)

// nemesis carries out the steps of a plan, on one goroutine. Faults overlap.
type nemesis struct {
	w         *world
	heals     []healing
	counts    map[string]int
	strangers int  // so far
	armed     int  // standstills that may begin
	over      bool // all faults end
}

// healing ends a fault.
type healing struct {
	at time.Duration
	do func()
}

// run carries out all steps, and then ends all faults.
func (n *nemesis) run() {
	for _, s := range n.w.plan.steps {
		n.until(n.w.now() + s.gap)
		if s.rest > 0 {
			n.w.beginRest(s)
		} else {
			n.inject(s)
		}
	}
	n.until(max(n.w.now(), n.w.plan.length))
	n.w.rested -= max(0, n.w.restLeft())
	n.healAll()
}

// until passes time, and ends the faults whose time has come.
func (n *nemesis) until(end time.Duration) {
	const glance = time.Second // how often servers are watched
	for {
		next := min(end, n.w.now()+glance)
		if len(n.heals) > 0 {
			next = min(next, n.heals[0].at)
		}
		n.sleep(next - n.w.now())
		for len(n.heals) > 0 && n.heals[0].at <= n.w.now() {
			do := n.heals[0].do
			n.heals = n.heals[1:]
			do()
			n.noteQuiet()
		}
		n.operate()
		n.w.judgeProgress()
		n.w.collectGarbage()
		if n.w.now() >= end {
			return
		}
	}
}

// sleep passes time, up to the next standstill.
func (n *nemesis) sleep(d time.Duration) {
	if n.armed == 0 || d <= 0 {
		time.Sleep(d)
		return
	}
	select {
	case t := <-n.w.stopped:
		n.stop(t)
	case <-time.After(d):
	}
}

// healAt plans the end of a fault.
func (n *nemesis) healAt(at time.Duration, do func()) {
	n.heals = append(n.heals, healing{at, do})
	slices.SortStableFunc(n.heals, func(a, b healing) int { return int(a.at - b.at) })
}

// collectGarbage collects garbage at fixed virtual times if nothing else does: a collection at any
// other time changes the order of goroutines. New memory costs more than a collection: each of its
// pages is a fault that the kernel has to handle.
func (w *world) collectGarbage() {
	every := 30 * time.Second // about 60 MB later
	switch {
	case w.restLeft() > 0:
		every = 15 * time.Minute
	case w.plan.pace < time.Second:
		every = 10 * time.Second
	}
	if os.Getenv("GOGC") == "off" && w.now()-w.collected > every {
		w.collected = w.now()
		runtime.GC()
	}
}

// healAll ends all faults now.
func (n *nemesis) healAll() {
	n.over = true
	for len(n.heals)+len(n.w.stopped) > 0 {
		if len(n.heals) == 0 {
			n.stop(<-n.w.stopped)
		}
		do := n.heals[0].do
		n.heals = n.heals[1:]
		do()
	}
	for _, m := range n.w.inside() {
		m.start()
	}
	n.noteQuiet()
	n.w.judgeProgress()
}

func (n *nemesis) inject(s step) {
	leader := n.w.leader().id - 1
	m := n.w.members[(leader+s.who)%len(n.w.members)]
	n.w.noteQuiet(false)
	heal := s.fault.inject(n, m, s)
	if heal == nil {
		n.noteQuiet()
		return // it was not possible now
	}
	n.w.logs.Info("FAULT", "kind", s.fault.name, "member", m.id, "lasts", s.lasts.String())
	if s.fault.awaited {
		s.lasts += standstillPatience // otherwise the exchange is over before
	} else {
		n.counts[s.fault.name]++
	}
	n.w.judgeProgress()
	n.healAt(n.w.now()+s.lasts, func() {
		n.w.logs.Info("FAULT ends", "kind", s.fault.name, "member", m.id)
		heal()
	})
}

// noteQuiet notes whether a fault is at work.
func (n *nemesis) noteQuiet() { n.w.noteQuiet(len(n.heals)+len(n.w.reconfigs) == 0) }

// operate does what an operator does.
func (n *nemesis) operate() {
	n.w.restartFailed()
	if n.w.reconfigure() {
		n.noteQuiet()
	}
}

// restartFailed restarts the members whose process has ended by itself, as an operator does, once
// their disk is well. That they ended is a problem unless their disk was not well.
func (w *world) restartFailed() {
	for _, m := range w.members {
		if m.life == nil || m.life.problem() == nil {
			continue
		}
		if m.fault == "" {
			w.complain("member %d ended by itself: %v", m.id, m.life.problem())
			m.fault = "ended by itself" // said once
		}
		if m.disk.current() == (diskFaults{}) {
			m.kill()
			m.start()
			w.noteQuiet(w.quietFor() > 0)
		}
	}
}
