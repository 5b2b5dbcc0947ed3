package consensus

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/gozkd/gozkd/consensus/internal/core"
	"github.com/gozkd/gozkd/consensus/internal/turn"
	"github.com/gozkd/gozkd/internal/testkit/vfstest"
	"github.com/gozkd/gozkd/wal"
)

// Some state must be on disk before a response leaves, and some is not worth a sync. These are
// raft's rules for AsyncStorageWrites.
func TestC1_WhatTheLogWrites(t *testing.T) {
	mem := vfstest.NewMem()
	syncs := 0
	cfg := onMem(t, vfstest.NewFaulty(mem, func(op vfstest.Op) error {
		if op.Kind == vfstest.OpSync {
			syncs++
		}
		return nil
	}))
	cfg.StateMachine = &list{}
	n, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.loop.Form(); err != nil {
		t.Fatal(err)
	}
	w, life := n.log.writer, n.core.Incarnation()
	state := func(term, vote, commit uint64) core.LogState {
		return core.LogState{Term: term, Vote: vote, Commit: commit, Incarnation: life}
	}
	response := func() []*raftpb.Message { return []*raftpb.Message{{Type: raftpb.MsgVoteResp.Enum()}} }
	hard := func(term, vote, commit uint64) *raftpb.Message {
		return &raftpb.Message{Term: &term, Vote: &vote, Commit: &commit}
	}
	voted, told, entry := hard(7, 1, 1), hard(7, 1, 2), hard(8, 0, 1)
	voted.Responses = response()
	entry.Entries = []*raftpb.Entry{{Term: proto.Uint64(8), Index: proto.Uint64(2), Data: []byte("x")}}
	entry.Responses = response()
	for _, tc := range []struct {
		name      string
		appends   []*raftpb.Message
		syncs     int
		responses int
		disk      core.LogState
		last      uint64
		mark      *core.Mark // goes with the last append
	}{
		{"responses alone", []*raftpb.Message{{Responses: response()}}, 0, 1, state(1, 0, 1), 1, nil},
		{"a term that no response needs", []*raftpb.Message{hard(6, 0, 1)}, 0, 0, state(1, 0, 1), 1, nil},
		{"a vote", []*raftpb.Message{voted}, 1, 1, state(7, 1, 1), 1, nil},
		{"a commit index", []*raftpb.Message{told}, 0, 0, state(7, 1, 1), 1, nil},
		{"several with an entry", []*raftpb.Message{hard(7, 1, 1), entry, {Responses: response()}}, 1, 2, state(8, 0, 1), 2, nil},
		{"outdated", []*raftpb.Message{hard(8, 1, 1), {Responses: response()}}, 1, 1,
			core.LogState{Term: 8, Vote: 1, Commit: 1, Incarnation: life, Outdated: true}, 2, &core.Mark{Incarnation: life, Outdated: true}},
		{"let in, in a later term", []*raftpb.Message{{}}, 1, 0, state(9, 1, 1), 2, &core.Mark{Incarnation: life, Term: 9, Vote: 1}},
		{"an old mark again, in a later term", []*raftpb.Message{hard(10, 2, 1), {}}, 1, 0, state(10, 2, 1), 2, &core.Mark{Incarnation: life, Term: 9, Vote: 1}},
		{"let in, in the term of a vote for another", []*raftpb.Message{hard(11, 2, 1), {}}, 1, 0, state(11, 1, 1), 2,
			&core.Mark{Incarnation: life, Term: 11, Vote: 1}},
	} {
		syncs = 0
		var work []turn.LogWork
		for _, m := range tc.appends {
			work = append(work, turn.LogWork{Append: m})
		}
		work[len(work)-1].Mark = tc.mark
		if got, want := w.writes(work), tc.syncs > 0 || tc.name == "a term that no response needs"; got != want {
			t.Errorf("%s: needs the disk: %v, want %v", tc.name, got, want)
		}
		if err := w.work(work); err != nil {
			t.Fatal(tc.name, err)
		}
		responses := 0
		for _, r := range n.inbox.logResults.take() {
			responses += len(r.responses)
		}
		if syncs != tc.syncs || responses != tc.responses {
			t.Errorf("%s: %d syncs, %d responses, want %d, %d", tc.name, syncs, responses, tc.syncs, tc.responses)
		}
		log, rec, err := wal.Open(cfg.walDir(), wal.Config{FS: mem.Crash(func(int) int { return 0 })})
		if err != nil {
			t.Fatal(tc.name, err)
		}
		got, err := core.DecodeLogState(rec.State)
		if err != nil || got != tc.disk || log.LastIndex() != tc.last {
			t.Errorf("%s: the disk has %+v, last index %d, %v; want %+v, %d", tc.name, got, log.LastIndex(), err, tc.disk, tc.last)
		}
		if last, err := w.storage.LastIndex(); err != nil || last != tc.last {
			t.Errorf("%s: raft's storage ends at %d, %v; want %d", tc.name, last, err, tc.last)
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
}

// A checkpoint is installed in its place among the appends: after those before it are durable, and
// before those after it.
func TestC1_InstallKeepsTheOrderOfAppends(t *testing.T) {
	var order []string
	w := &logWriter{storage: raft.NewMemoryStorage(), most: maxAppendBytes, done: func(responses []*raftpb.Message, installed *turn.Received) {
		if installed != nil {
			order = append(order, "install")
		}
		for _, r := range responses {
			order = append(order, fmt.Sprint("term ", r.GetTerm()))
		}
	}}
	inTerm := func(term uint64) turn.LogWork {
		return turn.LogWork{Append: &raftpb.Message{
			Term: &term, Vote: proto.Uint64(1), Commit: proto.Uint64(0), Responses: []*raftpb.Message{{Term: &term}},
		}}
	}
	conf := &raftpb.ConfState{Voters: []uint64{1}}
	install := turn.LogWork{
		Append:  &raftpb.Message{Snapshot: core.Snapshot(100, 3, conf)},
		Install: &turn.Received{Meta: core.Meta{Index: 100, Term: 3, Conf: conf}, Incarnation: 7},
	}
	if err := w.work([]turn.LogWork{inTerm(2), install, inTerm(4)}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"term 2", "install", "term 4"}; !slices.Equal(order, want) {
		t.Errorf("durable in the order %v, want %v", order, want)
	}
	if want := (core.LogState{Term: 4, Vote: 1, Incarnation: 7}); w.state != want {
		t.Errorf("the state is %+v, want %+v", w.state, want)
	}
}

// A long queue, or a long append, is written in parts.
func TestPersist_BoundsOneWrite(t *testing.T) {
	for _, tc := range []struct {
		name          string
		perAppend     int // entries
		bytes         int // of an entry
		memory, limit int // limit is that of a write
		segment       int64
	}{
		{"many appends", 1, 64 << 10, 64 * 128 << 10, 128 << 10, 0},
		{"a long append", 20, 64<<10 - entryOverhead, 64 * 128 << 10, 128 << 10, 0},
		{"appends that do not fit behind others", 3, 300, 1 << 40, 2 << 10, 4 << 10},
		{"entries of almost nothing", 20, 1, 64 * 200, 200, 0},
		{"entries above the limit", 20, 3000, 1 << 40, 3000, 4 << 10},
	} {
		longest := 0
		cfg := onMem(t, vfstest.NewMem())
		cfg.StateMachine, cfg.MemoryBytes, cfg.SegmentBytes = &list{}, int64(tc.memory), tc.segment
		cfg.OnSync = func(_ time.Duration, _, bytes int) { longest = max(longest, bytes) }
		n, err := Open(cfg)
		if err != nil {
			t.Fatal(tc.name, err)
		}
		if err := n.loop.Form(); err != nil {
			t.Fatal(tc.name, err)
		}
		longest = 0
		w := n.log.writer
		var work []turn.LogWork
		for first := 0; first < 20; first += tc.perAppend {
			m := new(raftpb.Message)
			for i := range min(tc.perAppend, 20-first) {
				m.Entries = append(m.Entries, &raftpb.Entry{Term: proto.Uint64(1), Index: proto.Uint64(uint64(first+i) + 2), Data: make([]byte, tc.bytes)})
			}
			work = append(work, turn.LogWork{Append: m})
		}
		if err := w.work(work); err != nil {
			t.Fatal(tc.name, err)
		}
		if last := w.log.LastIndex(); last != 21 {
			t.Errorf("%s: the log ends at %d, want 21", tc.name, last)
		}
		const frame = 100 // with the state
		if longest < tc.limit/2 || longest > tc.limit+frame {
			t.Errorf("%s: a write has %d bytes, the limit is %d", tc.name, longest, tc.limit)
		}
		if kept := cap(w.data); kept > 1<<10 || w.entries[:1][0].Data != nil {
			t.Errorf("%s: the writer keeps %d bytes, and entries that are written", tc.name, kept)
		}
		if err := n.Close(); err != nil {
			t.Fatal(tc.name, err)
		}
	}
}

// A power loss while a long append is written in parts leaves a part of it, in the term of its
// entries, with which a member starts. The response comes after the last part.
func TestC1_PowerLossInALongAppend(t *testing.T) {
	mem := vfstest.NewMem()
	type moment struct {
		fs       *vfstest.Mem
		op       vfstest.Op
		answered bool
	}
	var moments []moment
	var n *Node // nil: its log is not being written
	cfg := onMem(t, vfstest.NewFaulty(mem, func(op vfstest.Op) error {
		if n != nil {
			for _, choose := range []func(int) int{func(int) int { return 0 }, func(n int) int { return n - 1 }} {
				moments = append(moments, moment{mem.Crash(choose), op, !n.inbox.logResults.empty()})
			}
		}
		return nil
	}))
	cfg.StateMachine = &list{}
	opened, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := opened.loop.Form(); err != nil {
		t.Fatal(err)
	}
	const last = 21
	long := &raftpb.Message{Term: proto.Uint64(7), Vote: proto.Uint64(3), Commit: proto.Uint64(last), Responses: []*raftpb.Message{{Term: proto.Uint64(7)}}}
	for index := uint64(2); index <= last; index++ {
		long.Entries = append(long.Entries, &raftpb.Entry{Term: proto.Uint64(6), Index: &index, Data: make([]byte, 700)})
	}
	n = opened
	if err := n.log.writer.work([]turn.LogWork{{Append: long}}); err != nil {
		t.Fatal(err)
	}
	moments = append(moments, moment{fs: mem.Crash(func(int) int { return 0 }), answered: !n.inbox.logResults.empty()})
	n = nil
	if err := opened.Close(); err != nil {
		t.Fatal(err)
	}
	if !moments[len(moments)-1].answered {
		t.Error("the append is not answered")
	}
	ends := map[uint64]bool{}
	for _, m := range moments {
		restarted := cfg
		restarted.FS, restarted.StateMachine = m.fs, &list{}
		n, err := Open(restarted)
		if err != nil {
			t.Fatalf("after a power loss before %v: %v", m.op, err)
		}
		end, state := n.log.writer.log.LastIndex(), n.log.writer.written
		ends[end] = true
		want := core.LogState{Term: 7, Vote: 3, Commit: 1, Incarnation: state.Incarnation}
		switch {
		case end == 1:
			want.Term, want.Vote = 1, 0
		case end == last:
			want.Commit = last
		}
		if state != want || m.answered && end != last {
			t.Errorf("after a power loss before %v: the log ends at %d with %+v, want %+v; answered: %v", m.op, end, state, want, m.answered)
		}
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if len(ends) < 5 || !ends[1] || !ends[last] {
		t.Errorf("the log ended at %v only", ends)
	}
}
