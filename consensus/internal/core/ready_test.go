package core

import (
	"strings"
	"testing"
	"testing/cryptotest"

	"go.etcd.io/raft/v3/raftpb"
)

// rounds returns the read rounds that a member has asked for since the last call, which get lost.
func (m *member) rounds() (n int) {
	m.pump()
	for _, msg := range m.w.net {
		if msg.Raft.GetType() == raftpb.MsgReadIndex {
			n++
		}
	}
	m.w.net = nil
	return n
}

// A round whose answer does not come is asked for again, after readRetryTicks, and at once on a new
// connection to the leader. Other reads wait for the next round.
func TestRead_AsksAgain(t *testing.T) {
	cryptotest.SetGlobalRandom(t, 1)
	w := newWorld(t, 1, 3)
	w.calm(func() bool { return w.leader() != nil && !w.busy() && w.equal() })
	l := w.leader()
	f := w.members[l.id%3]
	other := w.members[(l.id+1)%3]
	f.read()
	if n := f.rounds(); n != 1 {
		t.Fatalf("%d rounds for a read", n)
	}
	f.read()
	if n := f.rounds(); n != 0 {
		t.Errorf("%d rounds while another is under way", n)
	}
	for range 2 {
		for range readRetryTicks - 1 {
			f.core.Tick()
		}
		if n := f.rounds(); n != 0 {
			t.Errorf("asked again after %d ticks", readRetryTicks-1)
		}
		f.core.Tick()
		if n := f.rounds(); n != 1 {
			t.Errorf("asked %d times after %d ticks", n, readRetryTicks)
		}
	}
	f.core.Reachable(other.id)
	if n := f.rounds(); n != 0 {
		t.Error("asked again for a connection to another follower")
	}
	f.core.Reachable(l.id)
	if n := f.rounds(); n != 1 || f.core.reads.round != 2 {
		t.Errorf("asked %d times on a new connection to the leader, in round %d", n, f.core.reads.round)
	}
	l.core.Reachable(l.id) // nothing is lost for the leader
	l.read()
	if n := l.rounds(); n != 0 {
		t.Error("the leader asks others")
	}
}

// An entry that this version does not know stops the member, and the batches of the turn are not
// applied.
func TestCore_UnknownEntry(t *testing.T) {
	_, m := lead(t)
	m.propose()
	kind := raftpb.EntryType(7)
	if err := m.core.raft.Step(&raftpb.Message{Type: raftpb.MsgProp.Enum(), From: &m.id, Entries: []*raftpb.Entry{{Type: &kind}}}); err != nil {
		t.Fatal(err)
	}
	m.pump()
	m.write(len(m.queue))
	out, err := m.core.Ready(0)
	if err == nil || !strings.Contains(err.Error(), "is of type 7") || len(out.Batches) > 0 {
		t.Errorf("%d batches, %v", len(out.Batches), err)
	}
}

// Without a request that waits, there is no time after which to look again.
func TestCore_ProposalDelayWithoutRequests(t *testing.T) {
	w, m := lead(t)
	m.propose()
	m.pump()
	w.nowMs++
	m.pump()
	if delayed, after := m.core.ProposalDelay(); !delayed || after != 0 {
		t.Errorf("delayed %v, after %v", delayed, after)
	}
}

// Requests that are applied leave the memory, and so does a buffer that has grown large.
func TestCore_ForgetsAppliedRequests(t *testing.T) {
	_, m := lead(t)
	for _, tc := range []struct {
		requests int
		kept     bool
	}{{maxKeptRequests / 4, true}, {4 * maxKeptRequests, false}} {
		for range tc.requests {
			m.propose()
		}
		m.pump()
		m.write(len(m.queue))
		m.pump()
		if n := cap(m.core.requests); len(m.core.requests) > 0 || (n > 0) != tc.kept {
			t.Errorf("after %d requests %d are kept, in a buffer for %d", tc.requests, len(m.core.requests), n)
		}
	}
}

// Replayed requests and their sizes are forgotten.
func TestCore_ForgetsReplayed(t *testing.T) {
	c := newFollower(t)
	data := appendRun(appendBatchHeader(nil, 1), &RequestRun{Server: 9, Incarnation: 1, First: 1, Payloads: [][]byte{{1}}})
	got, err := c.Replay(&raftpb.Entry{Index: new(uint64(2)), Term: new(uint64(1)), Type: raftpb.EntryNormal.Enum(), Data: data})
	if err != nil || len(got) != 1 || len(got[0].Requests) != 1 {
		t.Fatal(got, err)
	}
	if c.ForgetReplayed(); len(c.requests) > 0 || c.requests[:1][0].Payload != nil || c.Retention.bytes != 0 {
		t.Errorf("%d requests, %d bytes are kept", len(c.requests), c.Retention.bytes)
	}
}
