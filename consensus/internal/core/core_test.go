package core

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"slices"
	"testing"
	"testing/cryptotest"
	"time"

	"go.etcd.io/raft/v3"

	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
)

var quiet = &raft.DefaultLogger{Logger: log.New(io.Discard, "", 0)}

// lead makes a world of a sole member that leads and has applied its first entry.
func lead(t *testing.T) (*world, *member) {
	w := newWorld(t, 1, 1)
	m := w.members[0]
	m.pump()
	w.calm(func() bool { return m.core.role == raft.StateLeader && m.applied == uint64(len(m.disk))+1 })
	return w, m
}

func TestC1_NothingIsAppliedBeforeItIsOnDisk(t *testing.T) {
	_, m := lead(t)
	before := m.applied
	for range 3 {
		m.propose()
		m.pump()
	}
	if m.applied != before || m.answered != 0 {
		t.Fatalf("applied %d, answered %d with nothing written", m.applied, m.answered)
	}
	if len(m.queue) != 1 {
		t.Fatalf("%d appends wait, want one: later requests share the next", len(m.queue))
	}
	m.write(1)
	m.pump()
	if m.answered != 1 {
		t.Fatalf("%d answered after one of two writes", m.answered)
	}
	m.write(len(m.queue))
	m.pump()
	if m.answered != 3 {
		t.Fatalf("%d answered after three writes", m.answered)
	}
}

// Slow entries overlap: a new entry does not wait for the end of the previous one, up to a bound.
func TestCore_SlowEntriesOverlap(t *testing.T) {
	w, m := lead(t)
	for i := range 2 * maxInFlight {
		m.propose()
		m.pump()
		if got, want := len(m.queue), min(i+1, maxInFlight); got != want {
			t.Fatalf("%d entries are under way after %d ms, want %d", got, int64(i)*batchIntervalMs, want)
		}
		w.nowMs++
		m.propose()
		m.pump()
		want := time.Duration(0) // a request waits that long
		if i < maxInFlight-1 {
			want = BatchInterval - time.Millisecond
		}
		if delayed, after := m.core.ProposalDelay(); !delayed || after != want {
			t.Fatalf("%d were made, delayed %v, after %v, want %v", i+1, delayed, after, want)
		}
		w.nowMs += batchIntervalMs - 1
	}
	w.nowMs -= 1000 * batchIntervalMs // the clock is set back: waiting requests are not shut out
	m.write(1)
	m.pump()
	if m.core.proposer.inFlight != maxInFlight {
		t.Errorf("%d entries are under way", m.core.proposer.inFlight)
	}
	for len(m.queue) > 0 {
		m.write(len(m.queue))
		m.pump()
	}
	if delayed, after := m.core.ProposalDelay(); delayed || after != 0 {
		t.Errorf("delayed %v, after %v", delayed, after)
	}
}

// Entries that a lost leadership dropped do not count for a later leadership of the same member.
func TestCore_DroppedEntriesAreNotUnderWay(t *testing.T) {
	cryptotest.SetGlobalRandom(t, 1)
	w := newWorld(t, 1, 3)
	leads := func(m *member) func() bool {
		return func() bool { return w.leader() == m && m.core.Current() && !w.busy() && w.equal() }
	}
	w.calm(func() bool { return w.leader() != nil && leads(w.leader())() })
	l := w.leader()
	next := w.members[l.id%3]
	l.cut = true
	for range maxInFlight {
		l.propose()
		l.pump()
		w.nowMs += batchIntervalMs
	}
	if l.core.proposer.inFlight != maxInFlight {
		t.Fatalf("%d entries are under way", l.core.proposer.inFlight)
	}
	w.calm(func() bool { return l.core.role != raft.StateLeader && w.leader() != nil })
	l.cut = false
	w.calm(func() bool { return w.leader() != nil && leads(w.leader())() && l.answered == l.proposed })
	for _, m := range []*member{next, l} {
		if w.leader() != m {
			w.leader().core.raft.TransferLeader(m.id)
			w.calm(leads(m))
		}
		if n := m.core.proposer.inFlight; n != 0 {
			t.Errorf("member %d leads again, and %d entries are under way, although nothing is", m.id, n)
		}
	}
}

func TestC1_AVoteCountsOnlyOnDisk(t *testing.T) {
	w := newWorld(t, 1, 1)
	m := w.members[0]
	for range 3 * ElectionTicks {
		m.core.Tick()
		m.pump()
	}
	if m.core.role == raft.StateLeader {
		t.Fatal("a member leads by a vote that it has not written")
	}
}

func TestCore_OneEntryForAllThatIsReady(t *testing.T) {
	_, m := lead(t)
	before := m.applied
	for range 100 {
		m.propose()
	}
	m.pump()
	m.write(len(m.queue))
	m.pump()
	if m.applied != before+1 || m.answered != 100 {
		t.Fatalf("100 requests made %d entries, %d answered", m.applied-before, m.answered)
	}
}

// All entries are encoded in one buffer: raft keeps copies.
func TestCore_EntriesUnderWayStayAsTheyAre(t *testing.T) {
	w, m := lead(t)
	want := make([][]byte, 3)
	for i := range want {
		want[i] = bytes.Repeat([]byte{'a' + byte(i)}, 100)
		m.core.Propose(want[i], nil)
		m.pump()
		w.nowMs += batchIntervalMs
	}
	var got [][]byte
	for _, appends := range m.queue {
		for _, e := range appends.GetEntries() {
			_, err := ReadBatch(e.Data, func(server, _, _ uint64, payload []byte) {
				if server == m.id {
					got = append(got, payload)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if !slices.EqualFunc(got, want, bytes.Equal) {
		t.Errorf("%q are to be written, want %q", got, want)
	}
}

func TestCore_LargeBatchesAreSplit(t *testing.T) {
	for _, tc := range []struct{ requests, bytes, entries int }{
		{3, maxBatchBytes, 3}, // a single request may be of any size
		{4, maxBatchBytes / 2, 4},
		{4, maxBatchBytes/2 - 5, 2},
		{1000, maxBatchBytes / 100, 11},
	} {
		w := newWorld(t, 1, 1)
		m := w.members[0]
		m.pump()
		w.calm(func() bool { return m.core.role == raft.StateLeader })
		before, refs := m.core.applied, 0
		for i := range tc.requests {
			m.core.Propose(make([]byte, tc.bytes), i)
		}
		for refs < tc.requests {
			out, err := m.core.Ready(1)
			if err != nil {
				t.Fatal(err)
			}
			if out.Empty() && len(m.queue) == 0 {
				t.Fatalf("only %d of %d requests came back", refs, tc.requests)
			}
			for _, b := range out.Batches {
				for _, r := range b.Requests {
					if r.Ref != refs {
						t.Fatalf("ref %v, want %d", r.Ref, refs)
					}
					refs++
				}
			}
			m.queue = append(m.queue, out.Appends...)
			m.write(len(m.queue))
		}
		if got := int(m.core.applied - before); got != tc.entries {
			t.Errorf("%d requests of %d bytes made %d entries, want %d", tc.requests, tc.bytes, got, tc.entries)
		}
	}
}

func TestCore_AppliedEntriesLeaveTheMemory(t *testing.T) {
	_, m := lead(t)
	for range 3 * DefaultRetention(1<<40).CutEntries {
		m.propose()
		m.pump()
		m.write(len(m.queue))
		m.pump()
	}
	first, err := m.storage.FirstIndex()
	if err != nil {
		t.Fatal(err)
	}
	if kept := m.applied - first; kept > uint64(DefaultRetention(1<<40).CutEntries) {
		t.Fatalf("%d applied entries are still in memory, want at most %d", kept, DefaultRetention(1<<40).CutEntries)
	}
}

// The commit index reaches the disk late, so after a restart a member may not know that requests it
// answered are committed. A read that is requested at once must wait until the rest of the log is
// applied.
func TestRead_AfterARestartWaitsForWhatWasAnswered(t *testing.T) {
	w, m := lead(t)
	for range 5 {
		m.propose()
	}
	m.pump()
	m.write(len(m.queue))
	m.pump()
	if m.answered != 5 {
		t.Fatalf("%d answered", m.answered)
	}
	m.start()
	m.read()
	m.pump()
	for range 20 { // writes one by one, so that a leader exists before its first entry is written
		if len(m.queue) > 0 {
			m.write(1)
		}
		m.read()
		m.pump()
	}
	if w.nReads != 21 {
		t.Fatalf("%d reads ran, want 21", w.nReads)
	}
}

func TestRead_RunsAfterTheBatchesThatCameWithIt(t *testing.T) {
	w, m := lead(t)
	m.propose()
	m.pump()
	m.write(len(m.queue))
	m.read() // committed by the next Ready, not applied yet
	m.pump()
	if w.nReads != 1 {
		t.Fatalf("%d reads ran, want 1", w.nReads)
	}
}

func TestRead_WithoutALeaderWaits(t *testing.T) {
	w := newWorld(t, 1, 3)
	for _, m := range w.members {
		m.read()
		m.pump()
	}
	if w.nReads != 0 {
		t.Fatal("a read ran without a leader")
	}
}

// TestC1C2C4C6_ChaosOfThree runs three members through faults and then lets each lead once, so that
// the requests of each are applied. The checks are those of world.
func TestC1C2C4C6_ChaosOfThree(t *testing.T) { chaos(t, 3, exhaustive.Or[uint64](24, 60), 3000) }

// TestC1C2C4C6_ChaosOfOne is the same for a server alone: late disks, crashes, clock jumps.
func TestC1C2C4C6_ChaosOfOne(t *testing.T) { chaos(t, 1, exhaustive.Or[uint64](30, 60), 500) }

func chaos(t *testing.T, members int, seeds uint64, steps int) {
	if testing.Short() {
		seeds = 5
	}
	applied, reads, leads := 0, 0, 0
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			cryptotest.SetGlobalRandom(t, seed) // raft draws its election timeouts there
			w := newWorld(t, seed, members)
			for range steps {
				w.chaos()
			}
			for _, m := range w.members {
				m.cut = false
			}
			for _, m := range w.members {
				w.calm(func() bool {
					if l := w.leader(); l != nil && l != m {
						l.core.raft.TransferLeader(m.id)
						l.pump()
					}
					return !w.busy() && m.answered == m.proposed
				})
			}
			w.calm(func() bool { return !w.busy() && w.equal() })
			applied, reads, leads = applied+len(w.runs), reads+w.nReads, leads+w.nLeads
		})
	}
	t.Logf("%d requests applied, %d reads, %d leaders", applied, reads, leads)
	if applied == 0 || reads == 0 || leads < 2*int(seeds) {
		t.Error("too little happened")
	}
}

// equal reports whether all members have applied the same entries and have the same positions in
// all streams.
func (w *world) equal() bool {
	for _, m := range w.members {
		if m.applied != uint64(len(w.log)-1) || fmt.Sprint(m.core.streams) != fmt.Sprint(w.members[0].core.streams) {
			return false
		}
	}
	return true
}

// Two followers commit an entry that is not on the leader's disk yet, so that the leader has not
// applied it.
func TestRead_WaitsForWhatTheOthersCommitted(t *testing.T) {
	cryptotest.SetGlobalRandom(t, 1)
	w := newWorld(t, 1, 3)
	w.calm(func() bool { return w.leader() != nil && !w.busy() && w.equal() })
	l := w.leader()
	round := func() { // everything except the leader's disk
		for len(w.net) > 0 {
			w.deliver(0)
			for _, m := range w.members {
				if m != l {
					m.write(len(m.queue))
				}
				m.pump()
			}
		}
	}
	l.propose()
	l.pump()
	round()
	if l.applied != uint64(len(w.log)-2) {
		t.Fatalf("the leader has applied %d and the others %d, want one more", l.applied, len(w.log)-1)
	}
	l.read()
	l.pump()
	round()
	if len(l.core.reads.confirmed) != 1 || w.nReads != 0 {
		t.Fatalf("%d rounds confirmed, %d reads ran", len(l.core.reads.confirmed), w.nReads)
	}
	l.write(len(l.queue))
	l.pump()
	if w.nReads != 1 {
		t.Fatalf("%d reads ran, want 1", w.nReads)
	}
}

// A member whose requests always fill more than an entry does not keep out the others, whether it
// is the leader or not.
func TestCore_NoMemberIsShutOut(t *testing.T) {
	for _, many := range []uint64{1, 2} {
		_, m := lead(t)
		next := Streams{1: {m.state.Incarnation, 1}, 2: {1, 1}}
		request := func(server uint64, size int) {
			p, payload := next[server], make([]byte, size)
			next[server] = StreamPosition{p.Incarnation, p.Number + 1}
			if server == 1 {
				m.core.Propose(payload, nil)
				return
			}
			g := &RequestRun{Server: server, Incarnation: p.Incarnation, First: p.Number, Payloads: [][]byte{payload}}
			if err := m.core.Step(&Message{From: server, Forward: g}); err != nil {
				t.Fatal(err)
			}
		}
		one := 3 - many
		request(many, 2*maxBatchBytes)
		request(one, maxBatchBytes/2)
		for range 5 { // entries
			for range 8 {
				request(many, maxBatchBytes/4)
			}
			for {
				out, err := m.core.Ready(m.w.nowMs)
				if err != nil {
					t.Fatal(err)
				}
				if out.Empty() {
					break
				}
				for i := range out.Batches {
					if b := &out.Batches[i]; len(b.Requests) > 5 {
						t.Errorf("an entry of %d requests", len(b.Requests))
					}
				}
				m.queue = append(m.queue, out.Appends...)
			}
			m.write(len(m.queue))
		}
		if m.core.streams[many].Number < 5 || m.core.streams[one].Number != 1 {
			t.Errorf("%d is the busy member: %d of its requests are applied, and %d of the other's", many, m.core.streams[many].Number, m.core.streams[one].Number)
		}
	}
}
