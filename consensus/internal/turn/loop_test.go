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

func TestLoop_RestTicks(t *testing.T) {
	for _, tc := range []struct {
		what  string
		peers bool
		do    func(l *Loop)
		want  func(n int) bool
	}{
		{"alone", false, nil, func(n int) bool { return n == core.ElectionTicks }},
		{"at rest", true, nil, func(n int) bool { return n > 1 && n < core.ElectionTicks }},
		{"the log works", true, func(l *Loop) { l.log.awaited = 1 }, func(n int) bool { return n == 1 }},
		{"a checkpoint is written", true, func(l *Loop) { l.checkpoint.writing = true }, func(n int) bool { return n == 1 }},
	} {
		l, h := leadingLoop(t, Config{HasPeers: tc.peers})
		for range 3 * core.ElectionTicks {
			l.Tick()
			h.run(t, l)
		}
		if tc.do != nil {
			tc.do(l)
		}
		if n := l.RestTicks(); !tc.want(n) {
			t.Errorf("%s: %d ticks", tc.what, n)
		}
	}
}

func TestLoop_Idle(t *testing.T) {
	for what, do := range map[string]func(l *Loop){
		"nothing": func(*Loop) {}, "a checkpoint is written": func(l *Loop) { l.checkpoint.writing = true },
		"a checkpoint has arrived": func(l *Loop) { l.install.arrived = &Received{} },
		"a checkpoint is sent":     func(l *Loop) { l.transfers.active[2] = true },
		"a hand-over":              func(l *Loop) { l.handOver.done = func() {} },
	} {
		l, _ := leadingLoop(t, Config{})
		if do(l); l.Idle() != (what == "nothing") {
			t.Errorf("%s: idle %v", what, l.Idle())
		}
	}
}

// A hand-over ends when it has succeeded, or after two election timeouts. A later wish replaces an
// earlier one, and the end of both is told, in order.
func TestLoop_HandOver(t *testing.T) {
	s := newScript(t)
	s.run("members 1 2 3 elected")
	m := s.members[1]
	var ended []int
	m.loop.HandOver(2, func() { ended = append(ended, 1) })
	m.loop.HandOver(3, func() { ended = append(ended, 2) })
	for range 2*core.ElectionTicks - 1 {
		m.loop.tickHandOver()
	}
	if len(ended) > 0 || m.loop.handOver.to != 3 || m.loop.Idle() {
		t.Errorf("%v have ended after two election timeouts", ended)
	}
	m.loop.tickHandOver()
	if !slices.Equal(ended, []int{1, 2}) || m.loop.handOver.ticks != 0 || m.loop.handOver.to != 0 {
		t.Errorf("%v have ended, %+v", ended, m.loop.handOver)
	}
}

// The first error of the host ends a turn.
func TestLoop_ErrorsOfTheHost(t *testing.T) {
	for _, fails := range []string{"FormLog", "FormCheckpoint", "WriteLog", "Discard", "Install", "checkpoint", "none is prepared"} {
		var voters []uint64
		if fails != "FormLog" && fails != "FormCheckpoint" {
			voters = []uint64{1}
		}
		l, h := newLoop(t, Config{Durable: true}, voters...)
		h.fails = fails
		var err error
		switch fails {
		case "Discard":
			h.run(t, l)
			l.CheckpointReceived(&Received{From: 2, Term: 1, Meta: core.Meta{Index: 1, Term: 1, Conf: &raftpb.ConfState{}}})
			err = l.Turn()
		case "Install":
			r := &Received{Meta: core.Meta{Index: 9, Term: 1, Conf: &raftpb.ConfState{}}, Install: func() error { return errFake }}
			err = l.LogWritten(nil, r, h.now)
		case "checkpoint":
			h.fails = "WriteLog"
			err = l.CheckpointWritten(1, 0)
		case "none is prepared":
			l.install.prepared = &Received{Meta: core.Meta{Index: 8}}
			if _, err = l.beginInstall(9); err != nil && l.install.prepared != nil && !l.install.installing {
				err = errFake
			}
		default:
			err = l.Turn()
		}
		if !errors.Is(err, errFake) {
			t.Errorf("%s fails: %v", fails, err)
		}
		if fails == "FormLog" || fails == "FormCheckpoint" {
			if !l.core.Fresh() {
				t.Errorf("%s fails, and the member takes part", fails)
			}
		}
	}
}

// A batch says when its entry was made, and when it was in the log.
func TestLoop_TimesOfABatch(t *testing.T) {
	l, h := leadingLoop(t, Config{})
	l.core.Propose([]byte("a"), "a")
	made := h.now
	h.run(t, l)
	if len(h.batches) != 1 {
		t.Fatalf("%d batches", len(h.batches))
	}
	b := h.batches[0]
	if !b.EntryAt.Equal(made) || !b.Synced.Equal(made.Add(time.Millisecond)) || !b.Proposed.Equal(made) {
		t.Errorf("made at %v, synced at %v, proposed at %v", b.EntryAt, b.Synced, b.Proposed)
	}
}

func TestTrace(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	var tr applyTrace
	forward := func(first uint64) *core.Output {
		return &core.Output{Messages: []core.Message{{}, {Forward: &core.RequestRun{First: first, Payloads: [][]byte{{1}, {2}}}}}}
	}
	tr.noteOutput(forward(1), 7, at(1))
	tr.noteOutput(forward(3), 7, at(2))
	tr.noteOutput(forward(1), 7, at(9)) // again
	tr.noteOutput(&core.Output{Appends: []*raftpb.Message{{}, {Entries: []*raftpb.Entry{{Index: new(uint64(5))}, {Index: new(uint64(6))}}}}}, 7, at(3))
	tr.noteWritten(&raftpb.Message{Type: raftpb.MsgStorageAppendResp.Enum(), Index: new(uint64(6))}, at(4))
	tr.noteWritten(&raftpb.Message{Type: raftpb.MsgStorageApplyResp.Enum(), Index: new(uint64(7))}, at(5))
	tr.noteWritten(&raftpb.Message{Type: raftpb.MsgStorageAppendResp.Enum()}, at(6))
	out := &core.Output{Batches: []core.Batch{{Index: 4}, {Index: 5}, {Index: 6}, {Index: 7}}, FirstOwn: []uint64{0, 2, 0, 3}}
	tr.stamp(out)
	zero := time.Time{}
	for i, want := range []core.Batch{
		{Synced: at(4), EntryAt: zero, Proposed: zero}, // of an earlier process
		{Synced: at(4), EntryAt: at(3), Proposed: at(1)}, {Synced: at(4), EntryAt: at(3), Proposed: zero}, {Synced: zero, EntryAt: zero, Proposed: at(2)},
	} {
		b := out.Batches[i]
		if !b.Synced.Equal(want.Synced) || !b.EntryAt.Equal(want.EntryAt) || !b.Proposed.Equal(want.Proposed) {
			t.Errorf("batch %d: synced at %v, made at %v, proposed at %v", i, b.Synced, b.EntryAt, b.Proposed)
		}
	}
	tr.noteOutput(forward(1), 8, at(7)) // the numbers begin anew
	if out = (&core.Output{Batches: []core.Batch{{Index: 8}}, FirstOwn: []uint64{1}}); true {
		tr.stamp(out)
	}
	if got := out.Batches[0].Proposed; !got.Equal(at(7)) {
		t.Errorf("the first request of another incarnation was proposed at %v", got)
	}
}

// A checkpoint begins when enough was applied since the last, and no transfer reads the file; if it
// was put off, a tick begins it.
func TestLoop_CheckpointsWhenDue(t *testing.T) {
	for _, tc := range []struct {
		what string
		size int
		n    int
		want bool
	}{{"too few", 1, 9, false}, {"enough requests", 1, 10, true}, {"enough bytes", 500, 2, true}} {
		l, h := leadingLoop(t, Config{Durable: true, CheckpointRequests: 10, CheckpointBytes: 1000})
		for range tc.n {
			l.core.Propose(make([]byte, tc.size), nil)
		}
		l.transfers.active[2] = true
		if h.run(t, l); len(h.checkpoints) > 0 {
			t.Errorf("%s: %v during a transfer", tc.what, h.checkpoints)
		}
		delete(l.transfers.active, 2)
		if l.Tick(); len(h.checkpoints) > 0 != tc.want {
			t.Errorf("%s: %v", tc.what, h.checkpoints)
		}
		if l.Tick(); len(h.checkpoints) > 1 {
			t.Errorf("%s: another during the first", tc.what)
		}
	}
	l, h := leadingLoop(t, Config{Durable: true, CheckpointRequests: 10, CheckpointBytes: 1000})
	for range 10 {
		l.core.Propose([]byte{1}, nil)
	}
	if h.run(t, l); len(h.checkpoints) != 1 {
		t.Errorf("%v without a tick", h.checkpoints)
	}
}

func TestLoop_Checkpoint(t *testing.T) {
	for _, tc := range []struct {
		what    string
		durable bool
		do      func(l *Loop)
		want    bool
	}{
		{"a durable member", true, func(*Loop) {}, true},
		{"a member in memory", false, func(*Loop) {}, false},
		{"while one is written", true, func(l *Loop) { l.checkpoint.writing = true }, false},
		{"while one is installed", true, func(l *Loop) { l.install.installing = true }, false},
		{"while one is offered", true, func(l *Loop) { l.install.prepared = &Received{} }, false},
		{"while one has arrived", true, func(l *Loop) { l.install.arrived = &Received{} }, true},
	} {
		l, h := leadingLoop(t, Config{Durable: tc.durable})
		l.checkpoint.schedule.requests = 5
		if tc.do(l); l.Checkpoint() != tc.want || len(h.checkpoints) > 0 != tc.want {
			t.Errorf("%s: %v", tc.what, h.checkpoints)
		}
		if tc.want && l.checkpoint.schedule.requests > 0 {
			t.Errorf("%s: what it covers counts for the next", tc.what)
		}
		if tc.want && !l.checkpoint.writing {
			t.Errorf("%s: it is not being written", tc.what)
		}
		before := len(h.checkpoints)
		if l.writeCheckpoint(); tc.want && len(h.checkpoints) != before {
			t.Errorf("%s: written twice at a time", tc.what)
		}
	}
	fresh, _ := newLoop(t, Config{Durable: true})
	if fresh.Checkpoint() {
		t.Error("a member without state writes a checkpoint")
	}
}

// After a checkpoint the log drops what the previous one covers, but not what is in memory for
// others. The schedule rests.
func TestLoop_CheckpointWritten(t *testing.T) {
	for _, tc := range []struct {
		peers bool
		last  uint64
		want  uint64
	}{{false, 40, 40}, {true, 40, 1}, {true, 0, 0}} {
		l, h := leadingLoop(t, Config{Durable: true, HasPeers: tc.peers})
		l.checkpoint.last, l.checkpoint.writing = tc.last, true
		if err := l.CheckpointWritten(60, 5*time.Second); err != nil {
			t.Fatal(err)
		}
		if len(h.log) != 1 || h.log[0].Compact != tc.want || h.idle[0] {
			t.Errorf("peers %v: %+v", tc.peers, h.log)
		}
		if l.LastCheckpoint() != 60 || l.checkpoint.writing || !l.checkpoint.schedule.notBefore.Equal(h.mono.Add(checkpointRest*5*time.Second)) {
			t.Errorf("%+v", l.checkpoint)
		}
	}
}

// A host may write on the loop's goroutine if nothing is to be applied meanwhile.
func TestLoop_IdleWrites(t *testing.T) {
	l, h := leadingLoop(t, Config{})
	l.core.Propose([]byte("a"), nil)
	if err := l.Turn(); err != nil {
		t.Fatal(err)
	}
	h.write(t, l)
	l.core.Propose([]byte("b"), nil)
	if err := l.Turn(); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(h.idle, []bool{true, false}) {
		t.Errorf("idle writes: %v", h.idle)
	}
}

// The answer to an append of a relay is not sent: a report takes its place.
func TestLoop_RelayedAppend(t *testing.T) {
	l, h := newLoopOf(t, Config{}, core.Config{Relayed: true, Retention: core.DefaultRetention(1 << 40)}, &raftpb.ConfState{Voters: []uint64{2, 3}, Learners: []uint64{1}})
	l.core.Reachable(2)
	l.core.Reachable(3)
	const leader, relay, term = 2, 3, 2
	for index, from := range []uint64{2: leader, 3: relay, 4: leader} {
		if from == 0 {
			continue
		}
		m := &raftpb.Message{
			Type: raftpb.MsgApp.Enum(), From: &from, To: new(uint64(1)), Term: new(uint64(term)), Index: new(uint64(index - 1)), LogTerm: new(uint64(min(index-1, term))),
			Commit: new(uint64(index)), Entries: []*raftpb.Entry{{Index: new(uint64(index)), Term: new(uint64(term))}},
		}
		if from == relay {
			m.Context = []byte{1}
		}
		h.sent = nil
		if err := l.core.Step(&core.Message{To: 1, From: from, Raft: m}); err != nil {
			t.Fatal(err)
		}
		h.run(t, l)
		answered := slices.ContainsFunc(h.sent, func(m core.Message) bool { return m.Raft.GetType() == raftpb.MsgAppResp && len(m.Raft.Context) == 0 })
		if l.core.Applied() != uint64(index) || answered != (from == leader) {
			t.Errorf("entry %d of member %d: applied %d, answered %v", index, from, l.core.Applied(), answered)
		}
		l.Tick() // chooses the relay
	}
}

// A commit index alone waits for the next append, and each work is given to the log once.
func TestLoop_Persist(t *testing.T) {
	l, h := leadingLoop(t, Config{})
	l.pendingLog = nil // the commit index of the run so far
	commit := &raftpb.Message{Commit: new(uint64(3))}
	entry := &raftpb.Message{Entries: []*raftpb.Entry{{}}, Responses: []*raftpb.Message{{}, {}}}
	for i, tc := range []struct {
		append *raftpb.Message
		want   []*raftpb.Message
	}{
		{commit, nil}, {entry, []*raftpb.Message{commit, entry}}, {&raftpb.Message{Entries: entry.Entries}, []*raftpb.Message{{}}},
		{&raftpb.Message{Responses: entry.Responses[:1]}, []*raftpb.Message{{}}},
		{&raftpb.Message{}, nil},
	} {
		h.log = nil
		awaited := l.log.awaited
		if err := l.persist([]*raftpb.Message{tc.append}, true); err != nil {
			t.Fatal(err)
		}
		if len(h.log) != len(tc.want) || i == 1 && (h.log[0].Append != commit || h.log[1].Append != entry) {
			t.Errorf("step %d: %+v", i, h.log)
		}
		if n := l.log.awaited - awaited; n != len(tc.append.GetResponses()) {
			t.Errorf("step %d: %d responses are awaited", i, n)
		}
		for _, w := range l.pendingLog[:cap(l.pendingLog)] {
			if len(l.pendingLog) == 0 && w.Append != nil {
				t.Errorf("step %d: the loop keeps the append", i)
			}
		}
	}
	h.log, l.pendingLog = nil, nil
	l.persistedConf = &raftpb.ConfState{}
	for range 2 {
		if err := l.persist(nil, true); err != nil {
			t.Fatal(err)
		}
	}
	if len(h.log) != 1 || !h.log[0].PersistCommit {
		t.Errorf("another membership: %+v", h.log)
	}
	h.log = nil
	l.persistedMark.Incarnation++
	for range 2 {
		if err := l.persist([]*raftpb.Message{commit}, true); err != nil {
			t.Fatal(err)
		}
	}
	if len(h.log) != 2 || h.log[0].Mark == nil || h.log[1].Append != commit {
		t.Errorf("another mark: %+v", h.log)
	}
}

// A checkpoint that arrived waits for one that is being written or installed. Raft is not asked
// about the state of another ensemble.
func TestLoop_ArrivedCheckpoints(t *testing.T) {
	for _, tc := range []struct {
		what     string
		do       func(l *Loop)
		meta     core.Meta
		discards int
	}{
		{"of no use", func(*Loop) {}, core.Meta{Index: 1, Term: 1, Cluster: 5}, 1},
		{"of another ensemble", func(*Loop) {}, core.Meta{Index: 900, Term: 1, Cluster: 6}, 1},
		{"while one is written", func(l *Loop) { l.checkpoint.writing = true }, core.Meta{Index: 1, Term: 1, Cluster: 5}, 0},
		{"while one is installed", func(l *Loop) { l.install.installing = true }, core.Meta{Index: 1, Term: 1, Cluster: 5}, 0},
	} {
		l, h := newLoop(t, Config{Durable: true}, 1, 2, 3)
		tc.meta.Conf = &raftpb.ConfState{Voters: []uint64{1, 2, 3}}
		tc.do(l)
		l.CheckpointReceived(&Received{From: 2, Term: 3, Meta: tc.meta, Install: func() error { return nil }})
		if err := l.Turn(); err != nil {
			t.Fatal(err)
		}
		if h.discarded != tc.discards || (l.install.arrived == nil) != (tc.discards > 0) || l.install.prepared != nil {
			t.Errorf("%s: %d discarded, %+v", tc.what, h.discarded, l.install)
		}
	}
	l, h := newLoop(t, Config{Durable: true}, 1, 2, 3)
	l.checkpoint.schedule.requests = 77
	r := &Received{From: 2, Term: 3, Meta: core.Meta{Index: 900, Term: 2, Cluster: 5, Conf: &raftpb.ConfState{Voters: []uint64{1, 2, 3}}, Streams: core.Streams{1: {Incarnation: 4, Number: 1}}}, Install: func() error { return nil }}
	l.CheckpointReceived(r)
	if err := l.Turn(); err != nil {
		t.Fatal(err)
	}
	if !l.install.installing || h.discarded > 0 || r.Incarnation <= 4 {
		t.Fatalf("%+v, incarnation %d", l.install, r.Incarnation)
	}
	h.write(t, l)
	if l.install.installing || l.LastCheckpoint() != 900 || l.checkpoint.schedule.requests != 0 || l.core.Applied() != 900 {
		t.Errorf("%+v, applied %d", l.checkpoint, l.core.Applied())
	}
}

// Members with consecutive numbers write their checkpoints at different times, except alone.
func TestSchedule_Offset(t *testing.T) {
	for id, want := range map[uint64]schedule{0: {}, 1: {requests: 10, bytes: 20}, 7: {requests: 70, bytes: 140}, 8: {}, 9: {requests: 10, bytes: 20}} {
		var s schedule
		if s.offset(id, 80, 160); s != want {
			t.Errorf("member %d begins with %+v", id, s)
		}
	}
	for _, peers := range []bool{false, true} {
		l, _ := newLoop(t, Config{HasPeers: peers, CheckpointRequests: 80, CheckpointBytes: 160}, 1)
		if got := l.checkpoint.schedule.requests > 0; got != peers {
			t.Errorf("peers %v: %+v", peers, l.checkpoint.schedule)
		}
	}
	var s schedule
	s.note(&core.Batch{Requests: []core.Request{{Payload: make([]byte, 3)}, {Payload: make([]byte, 4)}}})
	if s.requests != 2 || s.bytes != 7 {
		t.Errorf("%+v", s)
	}
	if s.reset(); s != (schedule{}) {
		t.Errorf("after a reset %+v", s)
	}
}

// A member that is sent a checkpoint, or waits for one, is not sent another. Without leadership,
// nobody waits.
func TestLoop_SendsCheckpoints(t *testing.T) {
	l, h := leadingLoop(t, Config{})
	l.transfers.active[2] = true
	l.install.installing = true
	for range 2 {
		if err := l.sendCheckpoints([]uint64{2, 3}); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(l.transfers.wanted, []uint64{3}) || len(h.transfers) > 0 {
		t.Errorf("%v wait, sent %v", l.transfers.wanted, h.transfers)
	}
	l.install.installing, l.checkpoint.writing = false, true
	if err := l.sendCheckpoints(nil); err != nil || len(h.transfers) > 0 {
		t.Errorf("sent %v while a checkpoint is written, %v", h.transfers, err)
	}
	l.checkpoint.writing = false
	if err := l.sendCheckpoints(nil); err != nil || !slices.Equal(h.transfers, []string{fmt.Sprintf("%d to [3]", l.core.Applied())}) {
		t.Errorf("sent %v, %v", h.transfers, err)
	}
	if !l.transfers.active[3] || len(l.transfers.wanted) > 0 || l.core.Idle() {
		t.Errorf("%+v", l.transfers)
	}
	f, h := newLoop(t, Config{Durable: true}, 1, 2, 3)
	f.transfers.wanted = []uint64{2}
	if err := f.sendCheckpoints([]uint64{3}); err != nil || f.transfers.wanted != nil || len(h.transfers) > 0 {
		t.Errorf("a follower: %v wait, sent %v, %v", f.transfers.wanted, h.transfers, err)
	}
}
