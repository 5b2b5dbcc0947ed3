package turn

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/gozkd/gozkd/consensus/internal/core"
)

// An entry that the core can't apply ends the turn, and so does a log that fails while a checkpoint
// is offered, or an install that was not prepared.
func TestLoop_Errors(t *testing.T) {
	l, h := newLoop(t, Config{Durable: true}, 1, 2, 3)
	e := &raftpb.Entry{Index: new(uint64(2)), Term: new(uint64(2)), Type: new(raftpb.EntryType(7))}
	m := &raftpb.Message{
		Type: raftpb.MsgApp.Enum(), To: new(uint64(1)), From: new(uint64(2)), Term: new(uint64(2)),
		LogTerm: new(uint64(1)), Index: new(uint64(1)), Commit: new(uint64(2)), Entries: []*raftpb.Entry{e},
	}
	if err := l.core.Step(&core.Message{To: 1, From: 2, Raft: m}); err != nil {
		t.Fatal(err)
	}
	if err := l.Turn(); err != nil {
		t.Fatal(err)
	}
	h.write(t, l)
	if err := l.Turn(); err == nil {
		t.Error("an unknown entry is applied")
	}
	l, h = newLoop(t, Config{Durable: true}, 1, 2, 3)
	h.fails = "WriteLog"
	l.CheckpointReceived(&Received{From: 2, Term: 3, Meta: core.Meta{Index: 900, Term: 2, Cluster: 5, Conf: &raftpb.ConfState{Voters: []uint64{1, 2, 3}}}})
	if err := l.Turn(); !errors.Is(err, errFake) {
		t.Errorf("the log fails: %v", err)
	}
	if err := l.persist([]*raftpb.Message{{Snapshot: core.Snapshot(9, 1, &raftpb.ConfState{})}}, true); err == nil || len(l.pendingLog) > 0 {
		t.Error("a checkpoint is installed that was not prepared")
	}
}

// Messages leave in the turn in which they are made, once, and do not pass as this member's own.
func TestLoop_Sends(t *testing.T) {
	l, h := newLoop(t, Config{HasPeers: true}, 1, 2, 3)
	for range 2 * core.ElectionTicks {
		l.Tick()
		h.run(t, l)
	}
	if len(h.sent) == 0 || h.flushed != len(h.sent) {
		t.Errorf("%d messages, %d flushed", len(h.sent), h.flushed)
	}
	h.sent = nil
	marks := len(l.trace.synced.list)
	r := &raftpb.Message{Type: raftpb.MsgStorageAppendResp.Enum(), To: new(uint64(2)), Index: new(uint64(77))}
	if err := l.LogWritten([]*raftpb.Message{r}, nil, h.now); err != nil || len(h.sent) != 1 || h.sent[0].To != 2 || len(l.trace.synced.list) != marks {
		t.Errorf("%v sent, %v", h.sent, err)
	}
}

// A new mark is written although nothing else is to be done: before what relies on it, or, if it
// says that the member is outdated, last. Then its end is awaited.
func TestLoop_Marks(t *testing.T) {
	l, h := leadingLoop(t, Config{})
	l.persistedMark.Incarnation++
	if err := l.Turn(); err != nil {
		t.Fatal(err)
	}
	if n := len(h.log); n == 0 || h.log[n-1].Mark == nil {
		t.Errorf("%+v", h.log)
	}
	l, h = newLoop(t, Config{}, 1, 2, 3)
	l.core.SeeOwnIncarnation(5)
	commit := &raftpb.Message{Commit: new(uint64(1))}
	if err := l.persist([]*raftpb.Message{commit}, true); err != nil {
		t.Fatal(err)
	}
	if len(h.log) != 2 || h.log[0].Append != commit || h.log[1].Mark == nil || !h.log[1].Mark.Outdated || l.log.awaited != 1 {
		t.Errorf("%+v, %d awaited", h.log, l.log.awaited)
	}
	if err := l.persist(nil, true); err != nil || len(h.log) != 2 {
		t.Errorf("written again: %+v, %v", h.log, err)
	}
	if err := l.persist([]*raftpb.Message{{Entries: []*raftpb.Entry{{}}}, commit}, true); err != nil || len(h.log) != 4 {
		t.Errorf("an entry and a commit index: %+v, %v", h.log[2:], err)
	}
}

// The first checkpoint of a new ensemble is the last one so far.
func TestLoop_Forms(t *testing.T) {
	l, h := newLoop(t, Config{Durable: true})
	l.checkpoint.last = 0
	l.core.Admission.SetPeers(nil)
	if h.run(t, l); l.core.Fresh() || l.LastCheckpoint() != 1 {
		t.Errorf("fresh %v, the last checkpoint is %d", l.core.Fresh(), l.LastCheckpoint())
	}
}

// A checkpoint may be sent if the log in memory continues it without a gap. Otherwise another is
// written, and the log after that one is kept.
func TestLoop_SendsWhatTheLogContinues(t *testing.T) {
	for last, want := range map[uint64]string{1: "", 2: "2 to [3]", 3: "3 to [3]"} {
		l, h := leadingLoop(t, Config{Durable: true})
		if err := h.storage.Compact(2); err != nil {
			t.Fatal(err)
		}
		l.checkpoint.last = last
		if err := l.sendCheckpoints([]uint64{3}); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(h.transfers); got != "["+want+"]" || (len(h.checkpoints) > 0) != (want == "") || l.core.Idle() {
			t.Errorf("the log begins after entry 2, the checkpoint is of entry %d: sent %v, written %v, idle %v", last, got, h.checkpoints, l.core.Idle())
		}
	}
}

// Raft is told of a failed transfer after a time that doubles up to lastRetryTicks, and begins anew
// after a success.
func TestLoop_Retries(t *testing.T) {
	l, _ := leadingLoop(t, Config{Durable: true})
	end := func(ok bool) {
		t.Helper()
		l.core.Retention.TransferStarted(3, 1)
		if err := l.TransferEnded(3, ok); err != nil {
			t.Fatal(err)
		}
	}
	for _, ticks := range []int{firstRetryTicks, 2 * firstRetryTicks, 4 * firstRetryTicks} {
		end(false)
		for range ticks - 1 {
			l.tickTransfers()
		}
		if l.core.Idle() {
			t.Errorf("raft is told before %d ticks have passed", ticks)
		}
		if l.tickTransfers(); !l.core.Idle() {
			t.Errorf("raft is not told after %d ticks", ticks)
		}
	}
	for range 9 {
		end(false)
	}
	if got := l.transfers.retries[3].backoff; got != lastRetryTicks {
		t.Errorf("the longest time is %d ticks", got)
	}
	end(true)
	end(false)
	if got := l.transfers.retries[3].backoff; got != firstRetryTicks {
		t.Errorf("after a success the time is %d ticks", got)
	}
}

// The log keeps what the archive needs, also without other members.
func TestLoop_CheckpointWrittenForTheArchive(t *testing.T) {
	limits := core.DefaultRetention(1 << 40)
	limits.ArchiveBytes = 1 << 20
	l, h := newLoopWith(t, Config{Durable: true}, limits, 1)
	h.run(t, l)
	l.checkpoint.last = 40
	if err := l.CheckpointWritten(60, 0); err != nil || len(h.log) != 1 || h.log[0].Compact != 1 {
		t.Errorf("%+v, %v", h.log, err)
	}
}

// The limit after which a log hangs is twice the slowest recent write, up to maxLimit.
func TestLogProgress_Limits(t *testing.T) {
	for slowest, want := range map[int]int{0: core.ElectionTicks, 6: 12, 100: maxLimit} {
		p := logProgress{awaited: 1, slowest: slowest}
		for range want {
			if p.tick() {
				t.Errorf("slowest %d: it hangs after %d ticks", slowest, p.ticks)
			}
		}
		if !p.tick() {
			t.Errorf("slowest %d: it does not hang after %d ticks", slowest, p.ticks)
		}
	}
	p := logProgress{awaited: 3, slowest: 8, ticks: 2}
	if p.durable(1); p != (logProgress{awaited: 2, slowest: 6}) {
		t.Errorf("%+v", p)
	}
}

// However short the rest since the last one, a checkpoint is due when far too much was applied.
func TestSchedule_Stretch(t *testing.T) {
	now := time.Unix(100, 0)
	for _, s := range []schedule{{requests: 100 * checkpointStretch}, {bytes: 1000 * checkpointStretch}} {
		s.notBefore = now.Add(time.Hour)
		if !s.due(now, 100, 1000) {
			t.Errorf("%+v is not due", s)
		}
	}
}

func TestMarks_Details(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	var m marks
	m.latest(5, at(1))
	if m.latest(5, at(2)); !m.at(5).Equal(at(2)) {
		t.Error("an entry that was written again has its first time")
	}
	for range 3 {
		m.first(9, at(3))
	}
	if len(m.list) != 2 {
		t.Errorf("requests that were sent again have marks of their own: %v", m.list)
	}
	m = marks{}
	for n := range 20 {
		m.latest(uint64(n), at(n))
	}
	m.at(18)
	m.latest(30, at(30)) // moves what is not forgotten to the beginning
	if !m.at(18).Equal(at(18)) || !m.at(19).Equal(at(19)) || !m.at(20).Equal(at(30)) {
		t.Error("marks are lost with those that are forgotten")
	}
	m = marks{}
	var got []bool
	for n := range 100 { // more than are kept
		m.latest(uint64(2*n+1), at(n))
		m.latest(uint64(2*n+2), at(n+1000))
		got = append(got, m.at(uint64(2*n+1)).Equal(at(n)), m.at(uint64(2*n+2)).Equal(at(n+1000)))
	}
	if slices.Contains(got, false) {
		t.Errorf("%v", got)
	}
}
