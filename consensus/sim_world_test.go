package consensus

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/gozkd/gozkd/consensus/internal/core"
)

const (
	simTickMs   = 50
	simStartMs  = 1_700_000_000_000 // the wall clock where simulated time is 0
	simFormTick = 40
)

// simWorld is an ensemble in one goroutine: real loops, real logs on disks that crash, the real
// state machine, and a network, disks and clocks that follow a plan. Everything that happens is an
// event at a millisecond. All chance comes from one generator.
type simWorld struct {
	plan    plan
	bug     plantedBug
	rng     *rand.Rand
	chance  *rand.Rand // for faults after decisions, so that the others stay as they were
	chacha  io.Reader  // bytes from rng's seed, for the salts of the logs
	now     int64      // milliseconds
	events  simEvents
	members []*simMember
	net     simNet
	checks  simChecks
	moving  simProgress
	stats   simStats
	calm    bool // healed: no new faults
	final   Target
	serial  uint64
	asked   int64 // when a membership was last requested
	broken  int64 // until then checkpoint transfers break, or arrive late
	quiet   int64 // since then nothing except heartbeats happens; 0: more happens
	// quietApplied is the last applied entry at that time.
	quietApplied uint64
	noSkip       bool // do not skip quiet time
}

// simStats counts events.
type simStats struct {
	simulatedMs, skippedMs                                                       int64
	steps                                                                        [numStepKinds]int
	crashes, restarts, tornOps, leaders                                          int
	requests, applied, acknowledged, reads                                       int
	messages, lost, duplicated, delayed                                          int
	checkpoints, transfers, brokenTransfers, installed, readInPlace              int
	forms, readmitted, rolledBack, outdated, confChanges, reconciled, notReached int
	growthRefused, timesFull, outOfRoom                                          int
	expired, lateExpiries                                                        int
	activated, levelRefused, levelRequests                                       int
	relayedEntries, unrelayedEntries                                             int
	progress                                                                     simProgressStats
	decisions                                                                    simDecisions
}

// simFailure is the panic of a failed check. It ends the run and is its result.
type simFailure struct{ text string }

func (w *simWorld) fatalf(format string, args ...any) {
	panic(simFailure{fmt.Sprintf("after %d.%03d s: ", w.now/1000, w.now%1000) + fmt.Sprintf(format, args...)})
}

// must ends the run if there is an error.
func (w *simWorld) must(err error) {
	if err != nil {
		w.fatalf("%v", err)
	}
}

// simulate runs a plan and returns the failure of a check, or nil.
func simulate(p plan, bug plantedBug) (simStats, error) {
	w := newSimWorld(p, bug)
	err := w.simulate()
	return w.stats, err
}

func (w *simWorld) simulate() (err error) {
	defer func() {
		w.stats.simulatedMs = w.now
		switch r := recover().(type) {
		case nil:
		case simFailure:
			err = errors.New(r.text)
		case string: // raft's own checks
			err = fmt.Errorf("after %d ms: raft panics: %s", w.now, r)
		default:
			panic(r)
		}
	}()
	w.run(2000)
	for _, s := range w.plan.Steps {
		w.run(w.now + int64(s.GapMs))
		w.do(s)
	}
	w.run(w.now + 2000)
	w.heal()
	return nil
}

func newSimWorld(p plan, bug plantedBug) *simWorld {
	var seed [32]byte
	for i := range 8 {
		seed[i] = byte(p.Seed >> (8 * i))
	}
	w := &simWorld{
		plan: p, bug: bug, rng: rand.New(rand.NewPCG(p.Seed, 1)), chance: rand.New(rand.NewPCG(p.Seed, 2)), chacha: rand.NewChaCha8(seed),
		net: newSimNet(p.Members), checks: newSimChecks(),
		moving: simProgress{limitMs: simProgressMs, requests: map[simLife]simWaiting{}},
	}
	var voters, learners []uint64
	for i := range p.Members {
		if i < p.Members-p.Learners {
			voters = append(voters, uint64(i+1))
		} else {
			learners = append(learners, uint64(i+1))
		}
	}
	w.checks.conf = Target{Voters: voters, Learners: learners}
	for i := range p.Members {
		m := newSimMember(w, uint64(i+1), voters, learners)
		m.supports(p.level(i))
		w.members = append(w.members, m)
		if p.StartMs[i] >= 0 {
			w.at(w.now+1+int64(p.StartMs[i]), simEvent{kind: evStart, m: m, life: m.life})
		}
	}
	return w
}

type simEventKind uint8

const (
	evMessage simEventKind = iota
	evDisk
	evWork
	evStart
	evCall
)

type simEvent struct {
	at   int64
	seq  uint64
	kind simEventKind
	m    *simMember
	life int // of m: an event of an earlier life is void
	msg  core.Message
	from int // life of the sender
	call func()
}

// simEvents is a heap, ordered by time and then by creation.
type simEvents struct {
	heap []*simEvent
	seq  uint64
	free []*simEvent
}

func (h *simEvents) less(i, j int) bool {
	a, b := h.heap[i], h.heap[j]
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}

func (h *simEvents) push(e simEvent) {
	h.seq++
	e.seq = h.seq
	p := new(simEvent)
	if n := len(h.free); n > 0 {
		p, h.free = h.free[n-1], h.free[:n-1]
	}
	*p = e
	h.heap = append(h.heap, p)
	for i := len(h.heap) - 1; i > 0; {
		up := (i - 1) / 2
		if !h.less(i, up) {
			break
		}
		h.heap[i], h.heap[up] = h.heap[up], h.heap[i]
		i = up
	}
}

func (h *simEvents) pop() simEvent {
	top, last := h.heap[0], len(h.heap)-1
	h.heap[0] = h.heap[last]
	h.heap[last] = nil
	h.heap = h.heap[:last]
	for i := 0; ; {
		down := 2*i + 1
		if down >= last {
			break
		}
		if down+1 < last && h.less(down+1, down) {
			down++
		}
		if !h.less(down, i) {
			break
		}
		h.heap[i], h.heap[down] = h.heap[down], h.heap[i]
		i = down
	}
	e := *top
	*top = simEvent{}
	h.free = append(h.free, top)
	return e
}

func (w *simWorld) at(at int64, e simEvent) {
	e.at = at
	w.events.push(e)
}

// after calls f later, unless m's life has ended by then. m may be nil.
func (w *simWorld) after(ms int64, m *simMember, f func()) {
	e := simEvent{kind: evCall, m: m, call: f}
	if m != nil {
		e.life = m.life
	}
	w.at(w.now+ms, e)
}

// run lets time pass.
func (w *simWorld) run(until int64) {
	for {
		ticking := w.nextTick()
		next := until + 1
		if len(w.events.heap) > 0 {
			next = min(next, w.events.heap[0].at)
		}
		if ticking == nil || next <= ticking.tickAt {
			if next > until {
				break
			}
			w.now = next
			e := w.events.pop()
			w.handle(&e)
		} else {
			if ticking.tickAt > until {
				break
			}
			w.now = ticking.tickAt
			w.skipQuiet(next)
			if w.now = ticking.tickAt; w.now > until {
				w.now = until
				break
			}
			ticking.tickAt += simTickMs
			if ticking.stoppedUntil <= w.now {
				ticking.tick()
			}
		}
		for _, m := range w.members {
			if m.dirty && m.stoppedUntil <= w.now {
				m.takeTurn()
			}
		}
		w.moving.check(w)
	}
	w.now = until
}

// nextTick returns the running member with the earliest tick.
func (w *simWorld) nextTick() (next *simMember) {
	for _, m := range w.members {
		if m.up && (next == nil || m.tickAt < next.tickAt) {
			next = m
		}
	}
	return next
}

// skipQuiet skips time in which nothing would happen except heartbeats and reports to relays. Raft
// counts ticks modulo the election timeout, 10 ticks, and learners report to their relay each 3 or
// 4 ticks, depending on when heartbeats arrive. At rest the leader's raft gets two ticks of three.
// So after a multiple of these everything is as before.
func (w *simWorld) skipQuiet(next int64) {
	const round = 6 * core.ElectionTicks * simTickMs
	if w.noSkip || next-w.now <= round {
		return
	}
	if !w.isQuiet() {
		w.quiet = 0
		return
	}
	if applied := w.leader().applied; w.quiet == 0 || w.quietApplied != applied { // a request may come and go between two ticks
		w.quiet, w.quietApplied = w.now, applied
	}
	if w.now-w.quiet < round {
		return
	}
	w.moving.sample(w)
	skip := (next - w.now) / round * round
	for _, m := range w.members {
		m.tickAt += skip
	}
	w.quiet += skip
	w.stats.skippedMs += skip
}

// isQuiet reports whether all members follow the same leader, have all entries, and have nothing to
// do.
func (w *simWorld) isQuiet() bool {
	if max(w.net.lossy, w.net.slow, w.net.reorder, w.net.dup) > w.now {
		return false
	}
	lead := w.leader()
	if lead == nil {
		return false
	}
	for i, m := range w.members {
		if !m.up || m.dirty || m.stoppedUntil > w.now || m.writing || m.applied != lead.applied || m.receiving || !m.loop.Idle() {
			return false
		}
		conf := lead.core.Conf()
		if m.core.Leader() != lead.id || m.core.RaftTerm() != lead.core.RaftTerm() || !m.core.Idle() ||
			!contains(conf.GetVoters(), m.id) && !contains(conf.GetLearners(), m.id) {
			return false
		}
		for j := range w.members {
			if w.net.cut[i][j] > w.now || w.net.last[i][j] > w.now {
				return false
			}
		}
	}
	c := lead.core
	if !c.Leads() || !c.Current() || len(c.Conf().GetVotersOutgoing()) > 0 {
		return false
	}
	if t := lead.machine.target; len(t.Voters) > 0 &&
		(t.Serial != 0 || !sameMembers(t.Voters, c.Conf().GetVoters()) || !sameMembers(t.Learners, c.Conf().GetLearners())) {
		return false
	}
	last, err := lead.storage.LastIndex()
	w.must(err)
	return last == lead.applied && !slices.ContainsFunc(c.Peers(), func(p PeerStatus) bool { return p.Match != last || !p.InStep })
}

func (w *simWorld) handle(e *simEvent) {
	m := e.m
	if m != nil && e.life != m.life {
		return
	}
	if m != nil && m.stoppedUntil > w.now { // SIGSTOP: everything waits
		again := *e
		w.at(m.stoppedUntil, again)
		return
	}
	switch e.kind {
	case evMessage:
		// A newer connection replaces an older one.
		if newest := &w.net.senderLife[e.msg.From-1][m.id-1]; m.up && e.from >= *newest && m.greet(w.members[e.msg.From-1], e.from) {
			*newest = e.from
			w.stats.messages++
			m.receive(e.msg)
		}
	case evDisk:
		m.diskTurn()
	case evWork:
		m.client()
	case evStart:
		m.start()
	case evCall:
		e.call()
	}
}

// simNet is the network: the times until which a link is cut, or all links are bad in some way.
type simNet struct {
	cut                       [][]int64 // [from][to]
	down                      [][]bool  // the connection was lost, and both members know it
	lossy, slow, reorder, dup int64
	last                      [][]int64 // arrival of the newest message: later messages arrive no earlier
	senderLife                [][]int   // the newest life of the sender from which a message arrived
}

func newSimNet(n int) (s simNet) {
	for range n {
		s.cut, s.last, s.down = append(s.cut, make([]int64, n)), append(s.last, make([]int64, n)), append(s.down, make([]bool, n))
		s.senderLife = append(s.senderLife, make([]int, n))
	}
	return s
}

// send puts a message on the network. It reaches only the present life of the receiver.
func (w *simWorld) send(msg core.Message) {
	from, to := msg.From-1, msg.To-1
	if to >= uint64(len(w.members)) {
		w.fatalf("a message to member %d", msg.To)
	}
	dst, life := w.members[to], w.members[from].life
	if !dst.up || w.net.cut[from][to] > w.now || !w.compatible(w.members[from], dst) {
		w.stats.lost++
		return
	}
	if w.net.lossy > w.now && w.rng.IntN(4) == 0 {
		w.stats.lost++
		return
	}
	if w.plan.Encode {
		frame, err := msg.Encode()
		w.must(err)
		msg, err = core.DecodeMessage(msg.To, msg.From, frame)
		w.must(err)
	}
	w.answerAgain(msg, dst, life)
	delay := int64(1)
	if w.net.slow > w.now {
		delay += w.rng.Int64N(400)
		w.stats.delayed++
	}
	at := max(w.now+delay, w.net.last[from][to])
	w.net.last[from][to] = at
	if w.net.reorder > w.now {
		at = w.now + 1 + w.rng.Int64N(300)
		w.stats.delayed++
	}
	if w.net.dup > w.now && w.rng.IntN(3) == 0 {
		again := msg
		if msg.Raft != nil {
			again.Raft = proto.CloneOf(msg.Raft)
		}
		w.stats.duplicated++
		w.at(at+w.rng.Int64N(2000), simEvent{kind: evMessage, m: dst, life: dst.life, msg: again, from: life})
	}
	w.at(at, simEvent{kind: evMessage, m: dst, life: dst.life, msg: msg, from: life})
}

// cutLink makes one direction lose everything for a while. Both sides notice after some time that
// the connection is lost, and later that it is back.
func (w *simWorld) cutLink(from, to int, ms int64) {
	end := w.now + ms
	if w.net.cut[from][to] >= end {
		return
	}
	w.net.cut[from][to] = end
	a, b := w.members[from], w.members[to]
	w.after(min(ms, 1000+w.rng.Int64N(5000)), nil, func() {
		if w.net.cut[from][to] > w.now && !w.net.down[from][to] {
			w.net.down[from][to] = true
			a.unreachable(b.id, false)
			b.unreachable(a.id, false)
		}
	})
	w.after(ms+1, nil, func() { w.reconnect(from, to) })
}

func (w *simWorld) reconnect(from, to int) {
	if w.net.cut[from][to] > w.now {
		return
	}
	w.net.down[from][to] = false
	a, b := w.members[from], w.members[to]
	if w.connected(from, to) && w.compatible(a, b) {
		a.core.Levels.SetPeer(b.id, w.levelInfo(b))
		b.core.Levels.SetPeer(a.id, w.levelInfo(a))
		w.noteReturn(a, b)
		w.noteReturn(b, a)
		a.reachable(b.id)
		b.reachable(a.id)
	}
}

func (w *simWorld) connected(a, b int) bool {
	return w.members[a].up && w.members[b].up && w.net.cut[a][b] <= w.now && w.net.cut[b][a] <= w.now
}

func (w *simWorld) leader() *simMember {
	var leader *simMember
	for _, m := range w.members {
		if m.up && m.core.Leads() && (leader == nil || m.core.RaftTerm() > leader.core.RaftTerm()) {
			leader = m
		}
	}
	return leader
}

// ahead returns the running member that has applied most, or nil.
func (w *simWorld) ahead() (best *simMember) {
	for _, m := range w.members {
		if m.up && !m.core.Fresh() && (best == nil || m.core.Applied() > best.core.Applied()) {
			best = m
		}
	}
	return best
}

func sameMembers(a, b []uint64) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
