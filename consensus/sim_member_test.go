package consensus

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/gozkd/gozkd/consensus/internal/core"
	"github.com/gozkd/gozkd/consensus/internal/turn"
	"github.com/gozkd/gozkd/wal"
)

// simMember is one member. Its loop, its core, the writer of its log and its recovery are those of
// a Node. The simMember is the loop's turn.Host: it puts events of simulated time in the place of
// the Node's goroutines, and a simDisk in the place of the disk.
type simMember struct {
	w                *simWorld
	id               uint64
	voters, learners []uint64 // as configured: the initial members of a new ensemble
	disk             *simDisk
	life             int  // counts starts and ends
	emptied          bool // or rolled back, and not a voter again since
	tight            bool // it has little memory, see shrink
	skewMs           int64
	levels           LevelRange // of its version
	downgradedAt     int64

	up           bool
	dirty        bool // a turn is due
	stoppedUntil int64
	tickAt       int64
	slowUntil    int64 // its disk
	hungUntil    int64 // its disk: nothing that is written or synced ends before
	core         *core.Core
	loop         *turn.Loop
	storage      *raft.MemoryStorage
	writer       *logWriter
	machine      *simMachine
	proposed     uint64 // requests in this life
	answered     uint64
	ledTerm      uint64 // the last term in which this life led

	queue      []turn.LogWork
	writing    bool        // a turn of the disk is due
	asking     uint64      // a member that asks to be let in, in this turn; 0: none
	outdated   bool        // it has found its state to be older than its acknowledgements
	greeted    map[int]int // by member: the life of which this life has seen the hello
	generation int         // counts the times that transfers were cancelled
	receiving  bool

	applied uint64 // index of the state of machine

	// For bugNoNumbers.
	counted     core.Streams
	countedTerm uint64
}

var quiet = raftLogger{hclog.NewNullLogger()}

func newSimMember(w *simWorld, id uint64, voters, learners []uint64) *simMember {
	return &simMember{w: w, id: id, voters: voters, learners: learners, disk: newSimDisk(w)}
}

func (m *simMember) nowMs() int64 { return simStartMs + m.w.now + m.skewMs }

// start brings the member up from what its disk holds, as Open does. A crash may come on the way.
func (m *simMember) start() {
	if m.up {
		return
	}
	if m.hungUntil > m.w.now { // the start would wait for the disk
		m.w.at(m.hungUntil, simEvent{kind: evCall, call: m.restart})
		return
	}
	m.disk.restart()
	m.life++
	m.w.stats.restarts++
	*m = simMember{
		w: m.w, id: m.id, voters: m.voters, learners: m.learners, disk: m.disk, life: m.life, skewMs: m.skewMs, up: true, dirty: true,
		slowUntil: m.slowUntil, hungUntil: m.hungUntil, stoppedUntil: m.stoppedUntil, emptied: m.emptied, tight: m.tight, storage: m.storage, machine: newSimMachine(),
		levels: m.levels, downgradedAt: m.downgradedAt,
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
	m.core.Admission.SetPeers(others)
	m.core.SetTarget(m.machine.target)
	for _, o := range w.members {
		if o != m && o.up {
			w.after(1+w.rng.Int64N(20), m, func() { w.reconnect(int(m.id-1), int(o.id-1)) })
		}
	}
}

func (m *simMember) recover() error {
	r := recovered{meta: core.Meta{Member: m.id, Streams: core.Streams{}}}
	cp := m.disk.checkpoint
	if cp != nil {
		meta, err := core.DecodeMeta(cp.meta)
		m.w.must(err)
		if err := m.levels.Check(meta.Level, "the checkpoint"); err != nil {
			return err
		}
		r.meta = meta
		machine, err := restoreSimMachine(cp.all())
		if err != nil {
			m.w.fatalf("member %d: restore its checkpoint of index %d: %v", m.id, meta.Index, err)
		}
		m.machine = machine
		m.w.checks.state(m, meta.Index)
		m.w.checks.level(m, meta.Level)
	}
	log, rec, err := m.disk.open()
	if err != nil {
		return err
	}
	where := dataPaths{"checkpoint", "log", "dir"}
	if err := r.join(rec, cp != nil, m.id, where); err != nil {
		return err
	}
	if err := r.checkLevels(m.levels, where); err != nil {
		return err
	}
	if err := log.Append(r.begin(m.firstIncarnation(), m.w.rng.Uint64())); err != nil {
		return err
	}
	if m.w.bug == bugVotesEmpty && m.emptied && cp == nil {
		r.meta.Index, r.meta.Term, r.meta.Conf = 1, 1, &raftpb.ConfState{Voters: m.voters, Learners: m.learners}
		r.state.Term, r.state.Commit = 1, 1
		if err := errors.Join(log.Append(wal.Batch{State: r.state.Append(nil), Reset: 1}), m.disk.write(0, r.meta, m.machine.capture())); err != nil {
			return err
		}
	}
	m.storage = raft.NewMemoryStorage()
	if err := r.fill(m.storage); err != nil {
		return err
	}
	m.applied = r.meta.Index
	m.writer = &logWriter{log: log, storage: m.storage, most: 1 << 10, checkpoints: m.disk, state: r.state, written: r.state, done: m.logWritten}
	limits := core.DefaultRetention(1 << 40)
	if m.w.plan.Rapid || m.tight {
		limits = core.RetentionLimits{Bytes: 4 << 10, MaxBytes: 64 << 10, CutEntries: 8, CutBytes: 2 << 10}
	}
	m.core, err = core.New(core.Config{
		ID: m.id, Incarnation: r.state.Incarnation, Past: r.past, Outdated: r.state.Outdated, Storage: m.storage, Meta: r.meta, Voters: m.voters, Learners: m.learners,
		Nonce: m.w.rng.Uint64(), GraceTicks: m.graceTicks(), Relayed: m.w.plan.Relayed, Levels: m.levels, Retention: limits, Random: m.w.rng.Uint64, Logger: quiet,
	})
	m.w.must(err)
	m.loop = turn.New(turn.Config{
		Core: m.core, Host: m, Durable: true, HasPeers: true, LastCheckpoint: r.meta.Index,
		CheckpointRequests: m.checkpointRequests(), CheckpointBytes: 1 << 40,
	})
	return nil
}

func (m *simMember) firstIncarnation() uint64 { return uint64(m.nowMs())<<20 | m.w.rng.Uint64()>>44 }

// stop ends the member's life at once. With power, writes that were not synced are lost too.
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

// failed ends the member's life after an error. Nothing except a crash of the disk may cause one.
func (m *simMember) failed(err error) {
	if errors.Is(err, ErrLevel) {
		m.refused(err)
		return
	}
	if m.outOfRoom(err) {
		return
	}
	if !errors.Is(err, errPower) {
		m.w.fatalf("member %d stops: %v", m.id, err)
	}
	m.stop(true)
	m.w.after(100+m.w.rng.Int64N(5000), nil, m.restart)
}

// try ends the member's life if there is an error.
func (m *simMember) try(err error) {
	if err != nil {
		m.failed(err)
	}
}

// restart starts the member, if it is down.
func (m *simMember) restart() {
	if !m.up {
		m.start()
	}
}

func (m *simMember) receive(msg core.Message) {
	m.w.bugNumbers(m, &msg)
	m.countEntries(msg.Raft)
	m.noteMessage(&msg)
	m.w.must(m.core.Step(&msg))
	m.dirty = true
}

func (m *simMember) reachable(peer uint64) {
	if m.up {
		m.core.Reachable(peer)
		m.dirty = true
	}
}

func (m *simMember) unreachable(peer uint64, gone bool) {
	if m.up {
		m.core.Unreachable(peer, gone)
		m.dirty = true
	}
}

// takeTurn lets the loop do everything that follows from the events so far.
func (m *simMember) takeTurn() {
	m.dirty = false
	m.try(m.loop.Turn())
	m.noteTurn()
}

func (m *simMember) tick() {
	m.loop.Tick()
	m.noteTick()
	m.dirty = true
}

// The methods of turn.Host.

func (m *simMember) Now() time.Time { return time.UnixMilli(m.nowMs()) }

// Monotonic stands still, as if checkpoints took no time to write. None rests after another, so
// there are more of them.
func (m *simMember) Monotonic() time.Time { return time.Time{} }

func (m *simMember) Send(msg core.Message) {
	m.w.checks.promises(m, msg.Raft)
	m.w.send(msg)
}

// Flush comes once after each call of core.Ready.
func (m *simMember) Flush() {
	if m.core.Leads() && m.ledTerm != m.core.RaftTerm() {
		m.ledTerm = m.core.RaftTerm()
		m.w.checks.leads(m)
	}
	if m.core.Outdated() != "" && !m.outdated {
		m.outdated = true
		m.w.stats.outdated++
	}
	if m.emptied && !m.core.Fresh() && m.core.Outdated() == "" && m.w.votesAgain(m) {
		m.emptied = false
		m.w.stats.readmitted++
	}
}

func (m *simMember) Apply(batches []core.Batch) {
	for i := range batches {
		m.w.checks.apply(m, &batches[i])
	}
}

func (m *simMember) WriteLog(work []turn.LogWork, _ bool) error {
	m.noteChanges(work)
	for i := range work {
		if a := work[i].Append; a != nil && m.w.bug == bugAnswerBeforeSync {
			for _, r := range a.GetResponses() { // once more when the append is durable
				if r.GetTo() != m.id {
					m.w.send(core.Message{To: r.GetTo(), From: m.id, Raft: r})
				}
			}
		}
	}
	if slices.ContainsFunc(work, func(w turn.LogWork) bool { return w.Install != nil }) {
		m.disturbInstall()
	}
	m.queue = append(m.queue, work...)
	m.wakeDisk()
	return nil
}

// disturbInstall makes rare faults likely at the moment when they do most harm: a received
// checkpoint is about to take the place of checkpoint and log. A checkpoint of the member's own is
// due, which would use the same file, or the disk crashes in one of the next operations.
func (m *simMember) disturbInstall() {
	switch w := m.w; w.rng.IntN(4) {
	case 0:
		w.after(1, m, func() {
			m.loop.Checkpoint()
			m.dirty = true
		})
	case 1:
		if !w.calm && m.disk.crashAfter == 0 {
			m.disk.crashAfter, m.disk.power = 1+w.rng.IntN(8), w.rng.IntN(2) == 0
		}
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

// diskTurn does all the log's work that waits.
func (m *simMember) diskTurn() {
	if m.hungUntil > m.w.now {
		m.w.at(m.hungUntil, simEvent{kind: evDisk, m: m, life: m.life})
		return
	}
	m.writing = false
	work := m.queue
	m.queue = nil
	m.w.checks.appending(m, work)
	m.try(m.writer.work(work))
	m.dirty = m.up
}

// logWritten is called by the writer of the log for appends that are durable.
func (m *simMember) logWritten(responses []*raftpb.Message, installed *turn.Received) {
	if m.w.bug == bugReplyBeforeCommit && m.core.Leads() {
		for m.answered < m.proposed {
			m.answered++
			m.w.checks.acknowledge(m, m.answered)
		}
	}
	m.w.must(m.loop.LogWritten(responses, installed, m.Now()))
}

func (m *simMember) Installed(r *turn.Received, lost []any) {
	for _, ref := range lost {
		m.answered = ref.(uint64)
	}
	m.receiving = false
	m.w.checks.state(m, r.Meta.Index)
	m.w.checks.level(m, m.core.Levels.Active())
	m.core.SetTarget(m.machine.target)
	m.w.stats.installed++
}

func (m *simMember) FormLog(first core.LogState) error { return m.writer.begin(first) }

func (m *simMember) FormCheckpoint(meta core.Meta) error {
	if err := m.disk.write(m.loop.LastCheckpoint(), meta, m.machine.capture()); err != nil {
		return err
	}
	m.w.stats.forms++
	m.w.stats.decisions.noteForm(m)
	m.applied = meta.Index
	return nil
}

// Reconciled proposes the next target, as the server does.
func (m *simMember) Reconciled(r core.Reconciled) {
	m.w.stats.reconciled++
	t := m.machine.target
	if t.Serial != r.Serial {
		return // there is a newer one
	}
	t.Serial = 0
	if !r.Reached { // back to the present membership
		m.w.stats.notReached++
		t = Target{Voters: m.core.Conf().GetVoters(), Learners: m.core.Conf().GetLearners()}
	}
	m.propose(&simRequest{kind: kindTarget, target: t})
}

func (m *simMember) WriteCheckpoint(base uint64, meta core.Meta) {
	changes := m.machine.capture()
	if m.w.bug == bugIndexOffByOne {
		meta.Index--
	}
	delay := 1 + m.w.rng.Int64N(20)
	if m.w.rng.IntN(4) == 0 {
		delay += m.w.rng.Int64N(3000)
	}
	m.w.after(delay, m, func() { m.checkpointTurn(base, meta, changes) })
}

// checkpointTurn writes a checkpoint once the disk does not hang.
func (m *simMember) checkpointTurn(base uint64, meta core.Meta, changes Changes) {
	if m.hungUntil > m.w.now {
		m.w.after(m.hungUntil-m.w.now, m, func() { m.checkpointTurn(base, meta, changes) })
		return
	}
	if err := m.disk.write(base, meta, changes); err != nil {
		m.failed(err)
		return
	}
	m.w.stats.checkpoints++
	m.dirty = true
	m.try(m.loop.CheckpointWritten(meta.Index, 0))
}

// propose gives the member a request of its clients.
func (m *simMember) propose(r *simRequest) {
	m.proposed++
	m.w.stats.requests++
	r.member, r.life, r.number = m.id, uint64(m.life), m.proposed
	m.core.Propose(r.append(nil), m.proposed)
	m.dirty = true
}

// write proposes a random request.
func (m *simMember) write() {
	w := m.w
	if m.core.Levels.Active() > simLevel && w.rng.IntN(4) == 0 {
		m.propose(&simRequest{kind: kindLevel2})
		return
	}
	if m.core.Leads() && m.core.Current() && w.rng.IntN(12) == 0 {
		if body := m.machine.randomExpiry(w.rng, uint8(m.id), w.bug == bugExpiryOfOldLeader); body != nil {
			m.propose(&simRequest{kind: kindExpire, term: uint64(m.machine.tree.LastZxid().Epoch()), body: body})
			return
		}
	}
	m.propose(&simRequest{kind: kindTree, body: m.machine.randomWrite(w.rng, uint8(m.id))})
}

// read requests a read. When the read runs, it must see everything that any member had applied at
// the time of the request.
func (m *simMember) read() {
	want := m.w.checks.last()
	check := func() {
		m.w.stats.reads++
		if m.applied < want {
			m.w.fatalf("member %d: a read runs at index %d, but %d was applied when it was requested", m.id, m.applied, want)
		}
	}
	if m.w.bug == bugStaleLeaderReads && m.core.Leads() && m.core.Current() {
		check()
		return
	}
	m.core.Read(check)
	m.dirty = true
}

// serve takes some requests.
func (m *simMember) serve() {
	if m.core.Pending() < 200 {
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
	last, _ := m.storage.LastIndex()
	return fmt.Sprintf("member %d: %v, log to %d, writing %v, target %v, last checkpoint %d, loop idle %v",
		m.id, m.core, last, m.writing, m.machine.target, m.loop.LastCheckpoint(), m.loop.Idle())
}

func (m *simMember) hasState() bool { return m.disk.checkpoint != nil }
