package turn

import (
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/gozkd/gozkd/consensus/internal/core"
)

// Host is the surroundings of a member. All methods are called from Turn, Tick and the methods for
// events, on the caller's goroutine. An error ends the member.
type Host interface {
	// Now is the wall clock. It may jump.
	Now() time.Time
	// Monotonic is a clock that does not jump.
	Monotonic() time.Time

	// Send queues a message to another member, and Flush lets the queued messages go. A message may
	// be lost: raft and the streams send again.
	Send(m core.Message)
	Flush()
	// WriteLog gives work to the log, which does it in order; the slice is valid during the call.
	// The responses of durable appends come back through LogWritten. idle says that the loop has
	// nothing to apply meanwhile, so the host may write on the loop's goroutine.
	WriteLog(work []LogWork, idle bool) error

	// Apply applies batches to the state machine.
	Apply(batches []core.Batch)
	// Reconciled says that the target with a serial was reached, or cannot be.
	Reconciled(r core.Reconciled)

	// FormLog and FormCheckpoint make the first log state and the first checkpoint of a new
	// ensemble durable before they return. A member in memory does nothing.
	FormLog(first core.LogState) error
	FormCheckpoint(meta core.Meta) error

	// WriteCheckpoint captures the changes since the checkpoint of index base and begins to write
	// them. CheckpointWritten reports the end.
	WriteCheckpoint(base uint64, meta core.Meta)

	// StartTransfer begins to send the checkpoint of that index to members. TransferEnded reports
	// the end of each transfer.
	StartTransfer(to []uint64, index uint64)
	// CancelTransfers ends all transfers soon.
	CancelTransfers()
	// Discard drops a received checkpoint that is of no use.
	Discard(r *Received) error
	// Installed says that a received checkpoint is in place. lost are the refs of this member's
	// requests that the checkpoint contains: their results are not known here.
	Installed(r *Received, lost []any)
}

// Config describes a Loop.
type Config struct {
	Core *core.Core
	Host Host
	// Durable: this member writes checkpoints of its own. A member in memory does not.
	Durable bool
	// HasPeers: the log on disk keeps the entries that the log in memory keeps for other members.
	HasPeers       bool
	LastCheckpoint uint64 // index of the checkpoint on disk
	// CheckpointRequests and CheckpointBytes are how much is applied until a checkpoint is due.
	CheckpointRequests int
	CheckpointBytes    int64
}

// Loop is the main loop of a member, without its waiting. A Loop is not safe for concurrent use.
type Loop struct {
	cfg  Config
	core *core.Core
	host Host

	pendingLog    []LogWork         // not worth waking the log for; goes along with the next append
	persistedConf *raftpb.ConfState // the log was told that this membership is committed
	persistedMark core.Mark         // the log was told
	log           logProgress

	checkpoint checkpointWriter
	transfers  transfers
	install    installer
	handOver   handOver
	trace      applyTrace
}

type checkpointWriter struct {
	schedule schedule
	writing  bool
	last     uint64 // index of the checkpoint on disk
}

// New returns the loop of a member.
func New(cfg Config) *Loop {
	l := &Loop{
		cfg: cfg, core: cfg.Core, host: cfg.Host, persistedConf: cfg.Core.Conf(), persistedMark: cfg.Core.Mark(),
		transfers: transfers{active: make(map[uint64]bool), retries: make(map[uint64]*retry)},
	}
	l.checkpoint.last = cfg.LastCheckpoint
	if cfg.HasPeers { // members do not all write their checkpoints at the same moment
		l.checkpoint.schedule.offset(cfg.Core.ID(), cfg.CheckpointRequests, cfg.CheckpointBytes)
	}
	return l
}

// Turn does everything that follows from the events since the last turn.
func (l *Loop) Turn() error {
	if err := l.offerReceived(); err != nil {
		return err
	}
	return l.work()
}

// Tick advances all timers by one tick. A turn must follow.
func (l *Loop) Tick() {
	l.core.LogStall.Set(l.log.tick())
	l.core.Tick()
	l.tickHandOver()
	l.tickTransfers()
	l.maybeCheckpoint() // a checkpoint may have been put off
}

// RestTicks returns after how many ticks the loop must wake up if nothing happens before: 1, or
// more if the ticks may be taken together. Without other members nothing depends on a single tick.
func (l *Loop) RestTicks() int {
	switch {
	case !l.cfg.HasPeers:
		return core.ElectionTicks
	case l.log.awaited == 0 && l.Idle():
		return l.core.Clock.RestTicks()
	}
	return 1
}

// work carries out the core's work until there is none. Messages leave and the log is given its
// work before batches are applied, so that network, disk and processor are busy at the same time.
func (l *Loop) work() error {
	for {
		now := l.host.Now()
		out, err := l.core.Ready(now.UnixMilli())
		if err != nil {
			return err
		}
		l.trace.noteOutput(&out, l.core.Incarnation(), now)
		for i := range out.Messages {
			l.host.Send(out.Messages[i])
		}
		l.host.Flush()
		if out.Empty() && l.core.Mark() == l.persistedMark {
			return nil
		}
		if err := l.persist(out.Appends, len(out.Batches) == 0); err != nil {
			return err
		}
		l.apply(&out)
		// After apply: a read sees all batches that it waited for.
		for _, read := range out.Reads {
			read()
		}
		if out.Form {
			if err := l.Form(); err != nil {
				return err
			}
		}
		for _, r := range out.Reconciled {
			l.host.Reconciled(r)
		}
		if err := l.sendCheckpoints(out.NeedCheckpoint); err != nil {
			return err
		}
		l.maybeCheckpoint()
	}
}

func (l *Loop) apply(out *core.Output) {
	if len(out.Batches) == 0 {
		return
	}
	l.trace.stamp(out)
	l.host.Apply(out.Batches)
	for i := range out.Batches {
		l.checkpoint.schedule.note(&out.Batches[i])
	}
}

// Form makes this member part of a new ensemble. Log and checkpoint become durable in the order in
// which a start trusts them: a log whose state says that the first checkpoint's index is committed,
// then that checkpoint. Raft takes part only after both are durable.
func (l *Loop) Form() error {
	meta := l.core.FirstMeta()
	if err := l.host.FormLog(l.core.Admission.FirstState()); err != nil {
		return err
	}
	if err := l.host.FormCheckpoint(meta); err != nil {
		return err
	}
	l.checkpoint.last = meta.Index
	return l.core.Formed()
}

// maybeCheckpoint begins a checkpoint if enough was applied since the last, and none is being sent.
func (l *Loop) maybeCheckpoint() {
	if len(l.transfers.active) == 0 &&
		l.checkpoint.schedule.due(l.host.Monotonic(), l.cfg.CheckpointRequests, l.cfg.CheckpointBytes) {
		l.Checkpoint()
	}
}

// Checkpoint begins a checkpoint of the current state, and reports whether it did. It does not
// while another checkpoint is being written or installed, and not without state.
func (l *Loop) Checkpoint() bool {
	if !l.cfg.Durable || l.checkpoint.writing || l.install.installing || l.install.prepared != nil || l.core.Applied() == 0 {
		return false
	}
	l.writeCheckpoint()
	return true
}

// writeCheckpoint begins a checkpoint, unless another is being written.
func (l *Loop) writeCheckpoint() {
	if l.checkpoint.writing {
		return
	}
	l.checkpoint.writing = true
	l.checkpoint.schedule.reset()
	meta := l.core.Meta()
	l.host.WriteCheckpoint(l.checkpoint.last, meta)
	for _, to := range l.transfers.wanted {
		l.core.Retention.TransferStarted(to, meta.Index) // keeps the log after the checkpoint
	}
}

// CheckpointWritten says that the checkpoint of that index is durable, and how long it took. The
// entries that the previous checkpoint covers are dropped from the log, except those that stay in
// memory for other members or an archive. The entries since the previous checkpoint stay: a start
// that finds the newest checkpoint damaged needs them.
func (l *Loop) CheckpointWritten(index uint64, took time.Duration) error {
	l.checkpoint.schedule.written(l.host.Monotonic(), took)
	previous := l.checkpoint.last
	l.checkpoint.writing, l.checkpoint.last = false, index
	first, err := l.core.FirstIndex()
	if err != nil {
		return err
	}
	if l.cfg.HasPeers || l.core.Retention.Archives() {
		previous = min(previous, first-1)
	}
	if err := l.host.WriteLog([]LogWork{{Compact: previous}}, false); err != nil {
		return err
	}
	return l.sendCheckpoints(nil)
}

type handOver struct {
	to    uint64 // 0: any voter
	done  func() // nil: there is no attempt
	ticks int
	term  uint64 // of the leadership to be passed on: a later one may be from a member that stops, too
}

// HandOver passes leadership, if this member leads, to the voter with the number to (0: any voter),
// provided that it can take over, and calls done when that has succeeded or failed. A later call
// replaces the wish of an earlier one.
func (l *Loop) HandOver(to uint64, done func()) {
	if earlier, last := l.handOver.done, done; earlier != nil {
		done = func() { earlier(); last() }
	}
	l.handOver = handOver{to: to, done: done, term: l.core.RaftTerm()}
	l.tickHandOver()
}

func (l *Loop) tickHandOver() {
	h := &l.handOver
	if h.done == nil {
		return
	}
	if h.ticks++; h.ticks <= 2*core.ElectionTicks && l.core.RaftTerm() == h.term && l.core.HandOver(h.to) {
		return
	}
	h.done()
	*h = handOver{}
}

// Idle reports whether no checkpoint is written, sent or installed, and no hand-over is under way.
func (l *Loop) Idle() bool {
	return !l.checkpoint.writing && l.install == installer{} && l.transfers.empty() && l.handOver.done == nil
}

// LastCheckpoint returns the index of the checkpoint on disk.
func (l *Loop) LastCheckpoint() uint64 { return l.checkpoint.last }
