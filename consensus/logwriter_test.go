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

// A long queue is written in parts.
func TestPersist_BoundsOneAppend(t *testing.T) {
	const limit = 2 << 20
	longest := 0
	cfg := Config{Dir: t.TempDir(), StateMachine: &list{}, MemoryBytes: 64 * limit, OnSync: func(_ time.Duration, _, bytes int) {
		longest = max(longest, bytes)
	}}
	n, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.loop.Form(); err != nil {
		t.Fatal(err)
	}
	w := n.log.writer
	var work []turn.LogWork
	for i := range 20 {
		e := &raftpb.Entry{Term: proto.Uint64(1), Index: proto.Uint64(uint64(i) + 2), Data: make([]byte, 1<<20)}
		work = append(work, turn.LogWork{Append: &raftpb.Message{Entries: []*raftpb.Entry{e}}})
	}
	if err := w.work(work); err != nil {
		t.Fatal(err)
	}
	if last := w.log.LastIndex(); last != 21 {
		t.Errorf("the log ends at %d, want 21", last)
	}
	if longest < limit || longest > limit+1<<20 {
		t.Errorf("an append has %d bytes, the limit is %d and the last entry", longest, limit)
	}
	if kept := cap(w.data); kept > 1<<10 || w.entries[:1][0].Data != nil {
		t.Errorf("the writer keeps %d bytes, and entries that are written", kept)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
}
