package consensus

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/gozkd/gozkd/consensus/internal/checkpoint"
	"github.com/gozkd/gozkd/wal"
)

// simMember is one member: the shell around the core, as Node is, but turned by events.
type simMember struct {
	w                *simWorld
	id               uint64
	voters, learners []uint64 // as configured: what a new ensemble begins with
	disk             *simDisk
	life             int // counts starts and ends
	emptied          bool
	skewMs           int64

	up           bool
	dirty        bool
	stoppedUntil int64
	tickAt       int64
	slowUntil    int64 // its disk
	core         *core
	storage      *raft.MemoryStorage
	log          *wal.Log
	writer       *logWriter
	machine      *simMachine
	proposed     uint64 // requests in this life
	answered     uint64
	handOver     int // ticks left

	toPersist      []logWork
	queue          []logWork
	writing        bool // a turn of the disk is due
	cadence        cadence
	checkpointing  bool
	lastCheckpoint uint64
	out            outgoing
	reign          int // counts the times that transfers were given up
	arrived        *received
	prepared       *received
	installing     bool
	receiving      bool

	applied uint64
}

func newSimMember(w *simWorld, id uint64, voters, learners []uint64) *simMember {
	return &simMember{w: w, id: id, voters: voters, learners: learners, disk: newSimDisk(w)}
}

func (m *simMember) nowMs() int64 { return simStartMs + m.w.now + m.skewMs }

// start brings the member up from what its disk holds, as Open does. A crash may come on the way.
func (m *simMember) start() {
	if m.up {
		return
	}
	m.disk.restart()
	m.life++
	m.w.stats.restarts++
	*m = simMember{
		w: m.w, id: m.id, voters: m.voters, learners: m.learners, disk: m.disk, life: m.life, skewMs: m.skewMs, up: true, dirty: true,
		slowUntil: m.slowUntil, stoppedUntil: m.stoppedUntil, emptied: m.emptied, storage: m.storage, machine: newSimMachine(),
		out: outgoing{active: make(map[uint64]bool), resting: make(map[uint64]*rest)},
	}
	if err := m.recover(); err != nil {
		m.failed(err)
		return
	}
	w := m.w
	m.tickAt = w.now + 1 + w.rng.Int64N(simTickMs)
	w.at(w.now+1, simEvent{kind: evWork, m: m, life: m.life})
	var others []uint64
	for _, o := range w.members {
		if o != m {
			others = append(others, o.id)
		}
	}
	m.core.setPeers(others)
	m.core.setTarget(m.machine.target)
	for _, o := range w.members {
		if o != m && o.up {
			w.after(1+w.rng.Int64N(20), m, func() { w.reconnect(int(m.id-1), int(o.id-1)) })
		}
	}
}

func (m *simMember) recover() error {
	r := recovered{meta: checkpointMeta{Member: m.id, Streams: streams{}}}
	cp := m.disk.checkpoint
	if cp != nil {
		meta, err := decodeMeta(cp.meta)
		m.w.must(err)
		r.meta = meta
		machine, err := restoreSimMachine(cp.all())
		if err != nil {
			m.w.fatalf("member %d: restore its checkpoint of index %d: %v", m.id, meta.Index, err)
		}
		m.machine = machine
		m.w.checks.state(m, meta.Index)
	}
	log, rec, err := m.disk.open()
	if err != nil {
		return err
	}
	m.log = log
	if err := r.join(rec, cp != nil, m.id, places{"checkpoint", "log", "dir"}); err != nil {
		return err
	}
	if err := log.Append(r.begin(m.firstIncarnation(), m.w.rng.Uint64())); err != nil {
		return err
	}
	if m.w.bug == bugVotesEmpty && m.emptied && cp == nil {
		r.meta.Index, r.meta.Term, r.meta.Conf = 1, 1, &raftpb.ConfState{Voters: m.voters, Learners: m.learners}
		r.state.Term, r.state.Commit = 1, 1
		if err := errors.Join(log.Append(wal.Batch{State: r.state.append(nil), Reset: 1}), m.disk.write(r.meta, m.machine.capture())); err != nil {
			return err
		}
	}
	m.storage = raft.NewMemoryStorage()
	if err := r.fill(m.storage); err != nil {
		return err
	}
	m.lastCheckpoint = r.meta.Index
	m.applied = r.meta.Index
	m.writer = &logWriter{
		log: log, storage: m.storage, checkpoints: m.disk, size: &atomic.Int64{}, state: r.state, written: r.state, done: m.persisted,
	}
	limits := defaultTailLimits()
	if m.w.plan.Rapid {
		limits = tailLimits{bytes: 4 << 10, maxBytes: 64 << 10, cutEntries: 8, cutBytes: 2 << 10}
	}
	m.core, err = newCore(coreConfig{
		id: m.id, incarnation: r.state.Incarnation, storage: m.storage, state: r.meta, voters: m.voters, learners: m.learners,
		nonce: m.w.rng.Uint64(), graceTicks: simFormTick, tail: limits, random: m.w.rng.Uint64, logger: quiet,
	})
	m.w.must(err)
	m.cadence = cadence{requests: int(m.id%8) * m.checkpointRequests() / 8}
	return nil
}

func (m *simMember) firstIncarnation() uint64 { return uint64(m.nowMs())<<20 | m.w.rng.Uint64()>>44 }

func (m *simMember) checkpointRequests() int {
	if m.w.plan.Rapid {
		return 40
	}
	return 400
}

// stop ends the member's life at once. power: what was not synced is lost too.
func (m *simMember) stop(power bool) {
	if !m.up {
		return
	}
	if !m.disk.crashed {
		m.disk.crash(power)
	}
	m.w.stats.crashes++
	m.up, m.dirty = false, false
	m.life++
}

// failed ends the member's life after an error, which only a crash of the disk may have brought.
func (m *simMember) failed(err error) {
	if !errors.Is(err, errPower) {
		m.w.fatalf("member %d stops: %v", m.id, err)
	}
	m.stop(true)
	m.w.after(100+m.w.rng.Int64N(5000), nil, m.restart)
}

// restart starts the member, if it is down.
func (m *simMember) restart() {
	if !m.up {
		m.start()
	}
}

func (m *simMember) receive(msg message) {
	m.w.bugNumbers(m, &msg)
	m.w.must(m.core.step(msg))
	m.dirty = true
}

func (m *simMember) reachable(peer uint64) {
	if m.up {
		m.core.reachable(peer)
		m.dirty = true
	}
}

func (m *simMember) unreachable(peer uint64, gone bool) {
	if m.up {
		m.core.unreachable(peer, gone)
		m.dirty = true
	}
}

// pump does what the core wants until it wants nothing more, as Node.work.
func (m *simMember) pump() {
	m.dirty = false
	if err := m.work(); err != nil {
		m.failed(err)
		return
	}
	if err := m.offerReceived(); err != nil {
		m.failed(err)
	}
}

func (m *simMember) work() error {
	for {
		role, term := m.core.role, m.core.raftTerm
		out, err := m.core.ready(m.nowMs())
		m.w.must(err)
		if m.core.role == raft.StateLeader && (role != raft.StateLeader || term != m.core.raftTerm) {
			m.w.checks.leads(m)
		}
		if m.emptied && !m.core.start.fresh && m.w.votesAgain(m) {
			m.emptied = false
			m.w.stats.readmitted++
		}
		for _, msg := range out.messages {
			m.w.send(msg)
		}
		if out.empty() {
			return nil
		}
		m.persist(out.appends)
		m.apply(out.batches)
		for _, read := range out.reads {
			read()
		}
		if out.form {
			if err := m.form(); err != nil {
				return err
			}
		}
		for _, s := range out.steered {
			m.steered(s)
		}
		if err := m.sendCheckpoints(out.checkpointsFor); err != nil {
			return err
		}
		m.maybeCheckpoint()
	}
}

// apply applies batches, checks each, and answers.
func (m *simMember) apply(batches []Batch) {
	for i := range batches {
		b := &batches[i]
		m.w.checks.apply(m, b)
		m.cadence.note(b)
	}
}

// persist is Node.persist.
func (m *simMember) persist(appends []*raftpb.Message) {
	awaited := false
	for _, a := range appends {
		w := logWork{append: a}
		if a.GetSnapshot() != nil {
			w.install, m.prepared = m.prepared, nil
			m.installing = true
			if w.install == nil || w.install.meta.Index != a.GetSnapshot().GetMetadata().GetIndex() {
				m.w.fatalf("member %d: raft wants a checkpoint installed that is not there", m.id)
			}
			w.install.incarnation = m.core.incarnationBehind(w.install.meta)
		}
		if m.w.bug == bugAnswerBeforeSync {
			var kept []*raftpb.Message
			for _, r := range a.GetResponses() {
				if r.GetTo() != m.id {
					m.w.send(message{to: r.GetTo(), from: m.id, raft: r})
				} else {
					kept = append(kept, r)
				}
			}
			awaited = awaited || len(a.GetResponses()) > 0
			a.Responses = kept
		}
		m.toPersist = append(m.toPersist, w)
		awaited = awaited || len(a.GetEntries()) > 0 || len(a.GetResponses()) > 0
	}
	if awaited {
		m.queue, m.toPersist = append(m.queue, m.toPersist...), nil
		m.wakeDisk()
	}
}

func (m *simMember) wakeDisk() {
	if m.writing {
		return
	}
	m.writing = true
	delay := int64(1)
	if m.slowUntil > m.w.now {
		delay += m.w.rng.Int64N(800)
	}
	m.w.at(m.w.now+delay, simEvent{kind: evDisk, m: m, life: m.life})
}

// diskTurn writes all that waits.
func (m *simMember) diskTurn() {
	m.writing = false
	work := m.queue
	m.queue = nil
	m.w.checks.appending(m, work)
	if err := m.writer.work(work); err != nil {
		m.failed(err)
		return
	}
	m.dirty = true
}

// persisted is what the log calls when something is on disk: Node.persisted.
func (m *simMember) persisted(responses []*raftpb.Message, installed *received) {
	if installed != nil {
		m.installing = false
		m.lastCheckpoint = installed.meta.Index
		m.cadence.begun()
		for _, ref := range m.core.installed(installed.meta, installed.incarnation) {
			m.answered = ref.(uint64)
		}
		installed.install()
		m.receiving = false
		m.w.checks.state(m, installed.meta.Index)
		m.core.setTarget(m.machine.target)
		m.w.stats.installed++
	}
	if m.w.bug == bugReplyBeforeCommit && m.core.role == raft.StateLeader {
		for m.answered < m.proposed {
			m.answered++
			m.w.checks.acknowledge(m, m.answered)
		}
	}
	for _, r := range responses {
		if r.GetTo() != m.id {
			m.w.send(message{to: r.GetTo(), from: m.id, raft: r})
		} else {
			m.w.must(m.core.persisted(r))
		}
	}
}

// form is Node.form.
func (m *simMember) form() error {
	meta := m.core.firstMeta()
	if err := m.writer.begin(m.core.firstState()); err != nil {
		return err
	}
	if err := m.disk.write(meta, m.machine.capture()); err != nil {
		return err
	}
	m.lastCheckpoint = meta.Index
	m.w.stats.forms++
	m.applied = meta.Index
	return m.core.formed()
}

func (m *simMember) steered(s Steered) {
	m.w.stats.steered++
	t := m.machine.target
	if t.Serial != s.Serial {
		return // there is another meanwhile
	}
	t.Serial = 0
	if !s.Reached { // as the server does: back to what is
		m.w.stats.notReached++
		t = Target{Voters: m.core.conf.GetVoters(), Learners: m.core.conf.GetLearners()}
	}
	m.propose(&simRequest{kind: kindTarget, target: t})
}

func (m *simMember) tick() {
	m.core.tick()
	m.tickTransfers()
	m.tickHandOver()
	m.dirty = true
}

func (m *simMember) tickHandOver() {
	if m.handOver == 0 {
		return
	}
	m.handOver--
	if m.core.role != raft.StateLeader || !m.core.handOver(m.core.conf.GetVoters()) {
		m.handOver = 0
	}
}

// Checkpoints: maybeCheckpoint, checkpoint, checkpointWritten, sendCheckpoints, startTransfers, receiveCheckpoint and offerReceived are
// those of Node, with events in the place of goroutines. None rests after another, as if they took no time to write: so there are more.

func (m *simMember) maybeCheckpoint() {
	if len(m.out.active) == 0 && !m.installing && m.prepared == nil && !m.core.start.fresh &&
		m.cadence.due(time.Time{}, m.checkpointRequests(), math.MaxInt64) {
		m.writeCheckpoint()
	}
}

func (m *simMember) writeCheckpoint() {
	if m.checkpointing {
		return
	}
	m.checkpointing = true
	m.cadence.begun()
	meta, changes := m.core.meta(), m.machine.capture()
	if m.w.bug == bugIndexOffByOne {
		meta.Index--
	}
	for _, to := range m.out.wanted {
		m.core.transferStarted(to, meta.Index)
	}
	delay := 1 + m.w.rng.Int64N(20)
	if m.w.rng.IntN(4) == 0 {
		delay += m.w.rng.Int64N(3000)
	}
	m.w.after(delay, m, func() {
		if err := m.disk.write(meta, changes); err != nil {
			m.failed(err)
			return
		}
		m.w.stats.checkpoints++
		m.checkpointing, m.lastCheckpoint = false, meta.Index
		first, err := m.storage.FirstIndex()
		m.w.must(err)
		m.queue = append(m.queue, logWork{compact: min(meta.Index, first-1)})
		m.wakeDisk()
		m.dirty = true
		if err := m.sendCheckpoints(nil); err != nil {
			m.failed(err)
		}
	})
}

func (m *simMember) sendCheckpoints(to []uint64) error {
	o := &m.out
	if m.core.role != raft.StateLeader {
		o.wanted = nil
		return nil
	}
	for _, id := range to {
		if !o.active[id] && !slices.Contains(o.wanted, id) {
			o.wanted = append(o.wanted, id)
		}
	}
	if len(o.wanted) == 0 || m.checkpointing || m.installing {
		return nil
	}
	first, err := m.storage.FirstIndex()
	if err != nil {
		return err
	}
	unknown := func(id uint64) bool { return !m.core.knows(m.lastCheckpoint, id) }
	if m.lastCheckpoint+1 < first || slices.ContainsFunc(o.wanted, unknown) {
		if len(o.active) == 0 {
			m.writeCheckpoint()
		}
		return nil
	}
	term, reign := m.core.raftTerm, m.reign
	for _, id := range o.wanted {
		m.core.transferStarted(id, m.lastCheckpoint)
		o.active[id] = true
		m.w.after(1, m, func() { m.transfer(id, term, reign) })
	}
	o.wanted = nil
	return nil
}

// transferEnded is Node.transferEnded.
func (m *simMember) transferEnded(to uint64, ok bool) {
	m.dirty = true
	if !ok {
		m.w.stats.brokenTransfers++
	}
	o := &m.out
	delete(o.active, to)
	r := o.resting[to]
	switch {
	case ok:
		delete(o.resting, to)
		m.core.transferEnded(to, true)
	case m.core.role != raft.StateLeader:
	case r == nil:
		o.resting[to] = &rest{firstWait, firstWait}
	default:
		r.wait = min(2*r.wait, lastWait)
		r.left = r.wait
	}
	if err := m.sendCheckpoints(nil); err != nil {
		m.failed(err)
	}
}

// tickTransfers is Node.tickTransfers.
func (m *simMember) tickTransfers() {
	o := &m.out
	if m.core.role != raft.StateLeader {
		if len(o.active)+len(o.wanted)+len(o.resting) > 0 {
			o.wanted = nil
			clear(o.resting)
			m.reign++
		}
		return
	}
	for _, to := range slices.Sorted(maps.Keys(o.resting)) {
		r := o.resting[to]
		if r.left == 0 {
			continue
		}
		if r.left--; r.left == 0 {
			m.core.transferEnded(to, false)
		}
	}
}

// transfer sends the checkpoint that is on disk now.
func (m *simMember) transfer(id, term uint64, reign int) {
	w := m.w
	w.stats.transfers++
	var stream bytes.Buffer
	w.must(checkpoint.WriteStream(&stream, term, m.disk.checkpoint.meta, m.disk.checkpoint.pairs))
	dst := w.members[id-1]
	ended := false
	end := func(ok bool) {
		if !ended {
			ended = true
			m.transferEnded(id, ok)
		}
	}
	if !w.connected(int(m.id-1), int(id-1)) || dst.receiving || reign != m.reign {
		w.after(1+w.rng.Int64N(100), m, func() { end(false) })
		return
	}
	delay, sent := 2+w.rng.Int64N(30), stream.Bytes()
	switch {
	case w.broken > w.now && w.rng.IntN(2) == 0:
		sent = sent[:w.rng.IntN(len(sent))]
	case w.broken > w.now:
		delay += w.rng.Int64N(20_000)
	}
	dst.receiving = true
	delete(dst.disk.aside, asidePath(m.id)) // the file is written anew
	lives := [2]int{m.life, dst.life}
	w.after(delay, dst, func() {
		if m.life != lives[0] || reign != m.reign || !w.connected(int(m.id-1), int(id-1)) {
			sent = sent[:w.rng.IntN(len(sent))] // the connection broke on the way
		}
		err := dst.receiveCheckpoint(m.id, bytes.NewReader(sent), len(sent) < stream.Len())
		if err != nil || w.bug == bugOneFileForTwo {
			dst.receiving = false
		}
		w.after(1, m, func() { end(err == nil) })
	})
	w.after(delay+2000, m, func() {
		if dst.life != lives[1] {
			end(false)
		}
	})
}

// receiveCheckpoint is Node.receiveCheckpoint.
func (m *simMember) receiveCheckpoint(from uint64, stream io.Reader, broken bool) error {
	r, err := checkpoint.ReadStream(stream)
	if err != nil {
		return err
	}
	meta, err := decodeMeta(r.Meta)
	if err != nil {
		return err
	}
	got := &received{from: from, term: r.Term, meta: meta, path: asidePath(from)}
	got.meta.Member = m.id
	kv := map[string]string{}
	var streamErr error
	machine, err := restoreSimMachine(func(yield func(k, v []byte) bool) {
		streamErr = r.Range(func(k, v []byte) error {
			kv[string(k)] = string(v)
			if !yield(k, v) {
				return errors.New("the state machine stopped reading")
			}
			return nil
		})
	})
	if err := errors.Join(streamErr, err); err != nil {
		if !broken {
			m.w.fatalf("member %d: a whole checkpoint can't be read: %v", m.id, err)
		}
		return err
	}
	if broken {
		m.w.fatalf("member %d took half a checkpoint", m.id)
	}
	if err := m.disk.durableStep(); err != nil { // its sync
		m.failed(err)
		return err
	}
	if m.w.bug == bugHalfInstalled && m.disk.checkpoint != nil {
		kv = maps.Clone(m.disk.checkpoint.kv)
	}
	m.disk.aside[got.path] = &simCheckpoint{meta: got.meta.append(nil), kv: kv}
	got.install = func() { m.machine = machine }
	m.arrived = got
	m.dirty = true
	return nil
}

// offerReceived is Node.offerReceived.
func (m *simMember) offerReceived() error {
	r := m.arrived
	if r == nil || m.checkpointing || m.installing {
		return nil
	}
	m.arrived, m.prepared = nil, r
	m.w.must(m.core.step(r.message(m.id)))
	if err := m.work(); err != nil {
		return err
	}
	if m.prepared != nil {
		m.prepared, m.receiving = nil, false
		return nil
	}
	return nil
}

// propose gives the member a request of its clients.
func (m *simMember) propose(r *simRequest) {
	m.proposed++
	m.w.stats.requests++
	r.member, r.life, r.number = m.id, uint64(m.life), m.proposed
	m.core.propose(r.append(nil), m.proposed)
	m.dirty = true
}

// write proposes a random request.
func (m *simMember) write() {
	w := m.w
	if m.core.role == raft.StateLeader && m.core.current() && w.rng.IntN(12) == 0 {
		if body := m.machine.randomExpiry(w.rng, uint8(m.id), w.bug == bugExpiryOfOldLeader); body != nil {
			m.propose(&simRequest{kind: kindExpire, term: uint64(m.machine.tree.LastZxid().Epoch()), body: body})
			return
		}
	}
	m.propose(&simRequest{kind: kindTree, body: m.machine.randomWrite(w.rng, uint8(m.id))})
}

// read asks for a read and checks, when it runs, that it sees all that anybody had applied when it was asked for.
func (m *simMember) read() {
	want := m.w.checks.last()
	check := func() {
		m.w.stats.reads++
		if m.core.applied < want {
			m.w.fatalf("member %d: a read runs at index %d, but %d was applied when it was asked for", m.id, m.core.applied, want)
		}
	}
	if m.w.bug == bugStaleLeaderReads && m.core.role == raft.StateLeader && m.core.current() {
		check()
		return
	}
	m.core.read(check)
	m.dirty = true
}

// serve takes some requests.
func (m *simMember) serve() {
	if len(m.core.own.pending) < 200 {
		for range 1 + m.w.rng.IntN(3) {
			m.write()
		}
		m.read()
	}
}

// client is a turn of the member's clients.
func (m *simMember) client() {
	w := m.w
	m.serve()
	every := 10_000 / int64(w.plan.Rate)
	w.at(w.now+1+w.rng.Int64N(2*every), simEvent{kind: evWork, m: m, life: m.life})
}

func (m *simMember) String() string {
	if !m.up || m.core == nil {
		return fmt.Sprintf("member %d: down, holds its last entry %v", m.id, m.holds(m.w.checks.last()))
	}
	c := m.core
	last, _ := m.storage.LastIndex()
	return fmt.Sprintf("member %d: %v of term %d, commit %d, log to %d, writing %v, leader %d, applied %d, fresh %v, conf %v, target %v, %d pending, checkpointing %v, "+
		"installing %v, transfers %d, last checkpoint %d", m.id, c.role, c.raftTerm,
		c.node.BasicStatus().HardState.GetCommit(), last, m.writing, c.leader, c.applied, c.start.fresh, c.conf, m.machine.target,
		len(c.own.pending), m.checkpointing, m.installing, len(m.out.active), m.lastCheckpoint)
}

func (m *simMember) hasState() bool { return m.disk.checkpoint != nil }

func contains(ids []uint64, id uint64) bool { return slices.Contains(ids, id) }
