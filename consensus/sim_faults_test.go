package consensus

import (
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/gozkd/gozkd/consensus/internal/core"
	"github.com/gozkd/gozkd/internal/testkit/vfstest"
)

// plantedBug is a mistake in the simulator's own layers. The checks must find it.
type plantedBug int

const (
	bugNone plantedBug = iota
	bugSkipSync
	bugAnswerBeforeSync
	bugReplyBeforeCommit
	bugNoNumbers
	bugIndexOffByOne
	bugStaleLeaderReads
	bugVotesEmpty
	bugHalfInstalled
	bugExpiryOfOldLeader
	bugOneFileForTwo
	bugLevelTooEarly
	numBugs
)

var bugNames = [numBugs]string{
	"none", "a sync is skipped", "acknowledged before the sync", "replied before commit", "streams without numbers",
	"checkpoint index off by one", "reads without asking a quorum", "an emptied member votes", "half a checkpoint installed",
	"an expiry of an old leader counts", "a second checkpoint is written over the first",
	"a level is activated although a member lacks it",
}

// bugHunts are the steps that each bug needs.
var bugHunts = [numBugs][]stepKind{
	bugSkipSync:          {stepPowerLoss, stepCrashAtOp},
	bugAnswerBeforeSync:  {stepPowerLoss, stepSlowDisk},
	bugReplyBeforeCommit: {stepCutOff, stepKillLeader},
	bugNoNumbers:         {stepKillLeader, stepLossyNet},
	bugIndexOffByOne:     {stepPowerLoss, stepCheckpoint},
	bugStaleLeaderReads:  {stepCutOff},
	bugVotesEmpty:        {stepEmptyDir, stepKill},
	bugHalfInstalled:     {stepCutOff, stepBurst, stepPowerLoss},
	bugExpiryOfOldLeader: {stepCutOff, stepHandOver, stepBurst},
	bugOneFileForTwo:     {stepSlowDisk, stepSlowDisk, stepCutOff, stepBurst},
	bugLevelTooEarly:     {stepUpgrade},
}

// firstPlans are the plans with which the search for the rare bugs begins. The first plan, or one
// soon after it, finds the bug.
var firstPlans = [numBugs]int{bugVotesEmpty: 23, bugExpiryOfOldLeader: 3, bugOneFileForTwo: 42}

func (b plantedBug) String() string { return bugNames[b] }

// bugNumbers makes a leader number the requests of others in the order in which they arrive.
func (w *simWorld) bugNumbers(m *simMember, msg *core.Message) {
	if w.bug != bugNoNumbers || msg.Forward == nil || !m.core.Leads() {
		return
	}
	g := *msg.Forward
	head := m.core.StreamHead(g.Server)
	if term := m.core.RaftTerm(); m.countedTerm != term {
		m.countedTerm, m.counted = term, core.Streams{}
	}
	if h := m.counted[g.Server]; h.Incarnation == g.Incarnation && (head.Incarnation != g.Incarnation || h.Number > head.Number) {
		head = h
	}
	if head.Incarnation == g.Incarnation {
		g.First = head.Number + 1
	}
	m.counted[g.Server] = core.StreamPosition{Incarnation: g.Incarnation, Number: g.Last()}
	msg.Forward = &g
}

// do carries out a step of the plan. A step that is impossible now is not counted.
func (w *simWorld) do(s step) {
	n := len(w.members)
	m, other := w.members[s.Member%n], w.members[s.Other%n]
	if l := w.leader(); s.Member == toLeader && l != nil {
		m = l
	}
	if !w.perform(s, m, other) {
		return
	}
	w.stats.steps[s.Kind]++
	for _, m := range w.members { // the clients are busy at this time
		for range 3 {
			w.after(w.rng.Int64N(1500), nil, func() {
				if m.up && m.stoppedUntil <= w.now {
					m.serve()
				}
			})
		}
	}
}

func (w *simWorld) perform(s step, m, other *simMember) bool {
	ms, end := int64(s.ForMs), w.now+int64(s.ForMs)
	switch s.Kind {
	case stepPowerLoss, stepKill:
		return w.kill(m, s.Kind == stepPowerLoss, ms)
	case stepKillLeader:
		l := w.leader()
		return l != nil && w.kill(l, false, ms)
	case stepPowerLossOfAll:
		for _, m := range w.members {
			if m.up {
				w.kill(m, true, ms+w.rng.Int64N(500))
			}
		}
	case stepCrashAtOp:
		if !m.up {
			return false
		}
		m.disk.crashAfter, m.disk.power = 1+w.rng.IntN(6+6*s.Other), w.rng.IntN(3) > 0
	case stepCutOff:
		for _, o := range w.members {
			if o != m {
				w.cutLink(int(m.id-1), int(o.id-1), ms)
				w.cutLink(int(o.id-1), int(m.id-1), ms)
			}
		}
	case stepCutOneWay:
		if m == other {
			return false
		}
		w.cutLink(int(m.id-1), int(other.id-1), ms)
	case stepSplit:
		for i := range w.members {
			for j := range w.members {
				if (i < (s.Other+1)%len(w.members)) != (j < (s.Other+1)%len(w.members)) {
					w.cutLink(i, j, ms)
				}
			}
		}
	case stepLossyNet:
		w.net.lossy = end
	case stepSlowNet:
		w.net.slow = end
	case stepReorder:
		w.net.reorder, w.net.dup = end, end
	case stepSlowDisk:
		m.slowUntil = end
	case stepHangDisk:
		m.hungUntil = max(m.hungUntil, end)
	case stepStop:
		if m.up {
			m.stoppedUntil = min(end, w.now+20_000)
		}
		return m.up
	case stepClockJump:
		m.skewMs += (int64(s.Other) - 2) * (1 + w.rng.Int64N(3_600_000))
	case stepEmptyDir:
		return w.empty(m, ms)
	case stepRollBack:
		done := w.rollBack(m, ms)
		if !done {
			w.rollBackSoon(m, ms, 90)
		}
		return done
	case stepTarget:
		return w.retarget(s, m)
	case stepHandOver:
		if l := w.leader(); l != nil {
			l.loop.HandOver(0, func() {})
			l.dirty = true
			return true
		}
		return false
	case stepBadTransfers:
		w.broken = end
	case stepBurst:
		if !m.up {
			return false
		}
		for range 20 << s.Other {
			m.write()
		}
	case stepCheckpoint:
		return m.up && m.loop.Checkpoint()
	case stepUpgrade, stepDowngrade:
		return w.changeVersion(m, s.Kind == stepUpgrade, ms)
	case stepLimit:
		return w.limitGrowth(s)
	case stepLittleMemory:
		m.shrink(s.Other, ms)
	case stepFullDisk:
		w.fillDisks(m, [...]int{1, 1, 1, 2, len(w.members)}[s.Other], end)
	}
	return true
}

// kill ends a member for a while. The others learn that its port refuses connections, if they can.
func (w *simWorld) kill(m *simMember, power bool, ms int64) bool {
	if !m.up {
		return false
	}
	m.stop(power)
	for _, o := range w.members {
		if o != m {
			w.after(1+w.rng.Int64N(30), o, func() {
				if w.net.cut[m.id-1][o.id-1] <= w.now && w.net.cut[o.id-1][m.id-1] <= w.now && !m.up {
					o.unreachable(m.id, !power)
				}
			})
		}
	}
	w.after(1+ms, nil, m.restart)
	return true
}

// empty deletes a member's data directory, if the others still have a quorum without it. No
// ensemble survives more than that.
func (w *simWorld) empty(m *simMember, ms int64) bool {
	if !w.canSpare(m) {
		return false
	}
	m.stop(true)
	m.emptied = true
	m.disk.checkpoint, m.disk.after, m.disk.fs, m.disk.copied = nil, nil, vfstest.NewMem(), nil
	m.storage = raft.NewMemoryStorage()
	w.after(1+ms, nil, m.restart)
	return true
}

// graceTicks is negative if the directory was emptied, but kept the file that names the members.
func (m *simMember) graceTicks() int {
	if m.emptied && m.id%2 == 0 {
		return -1
	}
	return simFormTick
}

// canSpare reports whether a member may lose its data: the others have a quorum without it, and
// will still have one after crashes.
func (w *simWorld) canSpare(m *simMember) bool {
	ahead := w.ahead()
	if ahead == nil || !m.hasState() {
		return false
	}
	for _, o := range w.members {
		if o.emptied || !o.hasState() && (contains(m.voters, o.id) || contains(ahead.core.Conf().GetVoters(), o.id)) {
			return false
		}
	}
	if !w.settled(ahead) || w.now-w.asked < 10_000 {
		return false
	}
	for _, o := range w.members { // they know the membership also after a crash
		if o != m && contains(ahead.core.Conf().GetVoters(), o.id) && (!o.up || o.writer.written.Commit < w.checks.confIndex) {
			return false
		}
	}
	voters := ahead.core.Conf().GetVoters()
	return !contains(voters, m.id) || len(voters) >= 3
}

// votesAgain reports whether an emptied member is a voter again, and knows that. A membership that
// it knows from a checkpoint may be from before it was let in.
func (w *simWorld) votesAgain(m *simMember) bool {
	ahead := w.ahead()
	return m.applied == ahead.applied && contains(ahead.core.Conf().GetVoters(), m.id) && contains(m.core.Conf().GetVoters(), m.id)
}

// settled reports whether the membership is the requested one, and no log holds a change that is
// not applied.
func (w *simWorld) settled(ahead *simMember) bool {
	conf, target := ahead.core.Conf(), ahead.machine.target
	if len(target.Voters) == 0 {
		target = w.checks.conf
	}
	if len(conf.GetVotersOutgoing()) > 0 || !sameMembers(conf.GetVoters(), target.Voters) || !sameMembers(conf.GetLearners(), target.Learners) ||
		ahead.applied != w.checks.last() {
		return false
	}
	for _, m := range w.members {
		if m.storage == nil {
			continue
		}
		if w.hasConfChange(m, ahead.applied) {
			return false
		}
		if m.up && m.core.Membership.Reconfiguring() {
			return false
		}
	}
	return true
}

func (w *simWorld) hasConfChange(m *simMember, after uint64) bool {
	last, err := m.storage.LastIndex()
	w.must(err)
	first, err := m.storage.FirstIndex()
	w.must(err)
	first = max(first, after+1)
	if first > last {
		return false
	}
	entries, err := m.storage.Entries(first, last+1, 1<<40)
	w.must(err)
	return slices.ContainsFunc(entries, func(e *raftpb.Entry) bool {
		if e.GetType() != raftpb.EntryNormal {
			return true
		}
		if core.EntryLevel(e) != 0 {
			return false
		}
		found := false
		_, err := core.ReadBatch(e.GetData(), func(_, _, _ uint64, payload []byte) {
			found = found || len(payload) > 0 && payload[0] == kindTarget
		})
		return found || len(e.GetData()) > 0 && err != nil
	})
}

// retarget requests another membership.
func (w *simWorld) retarget(s step, m *simMember) bool {
	ahead := w.ahead()
	if ahead == nil || !m.up {
		return false
	}
	for _, o := range w.members {
		if o.emptied {
			return false // otherwise the others might have to do without two members
		}
	}
	t := ahead.machine.target
	if len(t.Voters) == 0 {
		t = w.checks.conf
	}
	id := uint64(s.Other%len(w.members) + 1)
	voters, learners := slices.Clone(t.Voters), slices.Clone(t.Learners)
	without := func(ids []uint64) []uint64 {
		return slices.DeleteFunc(ids, func(x uint64) bool { return x == id })
	}
	wasVoter, wasLearner := contains(voters, id), contains(learners, id)
	voters, learners = without(voters), without(learners)
	choice := w.rng.IntN(3)
	if w.plan.Disturbed && w.chance.IntN(4) > 0 {
		choice = 2 // nothing else removes members
	}
	switch {
	case choice == 0 && wasVoter, choice == 1 && !wasLearner:
		learners = append(learners, id)
	case choice == 0, choice == 1, choice == 2 && !wasVoter:
		voters = append(voters, id)
	}
	if len(voters) == 0 {
		return false
	}
	w.serial++
	w.asked = w.now
	m.propose(&simRequest{kind: kindTarget, target: Target{Serial: w.serial, Voters: voters, Learners: learners}})
	return true
}

// heal ends all faults and waits until everything is well: all members vote and have the same
// state, nothing waits, and a new request of each member is applied everywhere within seconds.
func (w *simWorld) heal() {
	w.calm = true
	w.net.lossy, w.net.slow, w.net.reorder, w.net.dup, w.broken = 0, 0, 0, 0, 0
	for i, m := range w.members {
		for j := range w.members {
			w.net.cut[i][j] = 0
		}
		m.slowUntil, m.disk.crashAfter, m.disk.fullUntil = 0, 0, 0 // a stopped member continues by itself
		w.upgrade(m)
		m.hungUntil = 0
		if m.up && m.writing {
			w.at(w.now+1, simEvent{kind: evDisk, m: m, life: m.life})
		}
		m.restart()
	}
	for i := range w.members {
		for j := range w.members {
			if i != j {
				w.reconnect(i, j)
			}
		}
	}
	for _, m := range w.members {
		w.final.Voters = append(w.final.Voters, m.id)
	}
	w.until(300, "all members are one ensemble again", func() bool {
		if w.now/1000%5 == 0 { // repeatedly: another target may have replaced this one
			if l := w.leader(); l != nil && !sameMembers(l.machine.target.Voters, w.final.Voters) && l.core.Pending() == 0 {
				w.serial++
				w.final.Serial = w.serial
				l.propose(&simRequest{kind: kindTarget, target: w.final})
			}
			if l := w.leader(); l != nil && l.machine.tree.Limit().Weight != 0 && l.core.Pending() == 0 {
				l.proposeLimit(0)
			}
		}
		return w.well()
	})
	w.checks.nothingLost(w)
	for _, m := range w.members {
		m.write()
		m.read()
	}
	reads := w.stats.reads
	w.until(5, "new requests are applied everywhere", func() bool { return w.well() && w.stats.reads > reads })
	for _, m := range w.members {
		w.must(m.machine.tree.Check())
	}
}

// well reports whether all members vote, have the same state, and have nothing under way.
func (w *simWorld) well() bool {
	for _, m := range w.members {
		if !m.up || m.core.Fresh() || m.core.Outdated() != "" || m.core.Pending() > 0 || m.applied != w.checks.last() ||
			m.core.Levels.Active() != m.levels.Max || !sameMembers(m.core.Conf().GetVoters(), w.final.Voters) || len(m.core.Conf().GetVotersOutgoing()) > 0 || m.machine.target.Serial != 0 ||
			m.machine.tree.Limit().Weight != 0 {
			return false
		}
	}
	return true
}

// until lets time pass until done, for at most that many seconds.
func (w *simWorld) until(seconds int, what string, done func() bool) {
	for range seconds {
		w.run(w.now + 1000)
		if done() {
			return
		}
	}
	text := ""
	for _, m := range w.members {
		text += "\n" + m.String()
	}
	w.fatalf("%d s were not enough until %s:%s", seconds, what, text)
}
