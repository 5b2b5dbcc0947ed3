package turn

import (
	"strings"
	"testing"

	"github.com/gozkd/gozkd/consensus/internal/core"
)

// A checkpoint that did not arrive is not sent again at once, and a member that does not lead sends
// none.
func TestTransfer_FailuresRestAndLeadershipEnds(t *testing.T) {
	s := newScript(t)
	s.run("members 1 2 elected")
	m := s.members[1]
	o := &m.loop.transfers
	o.active[2] = true
	m.try(m.loop.TransferEnded(2, false))
	for want := firstRetryTicks; want <= 4*firstRetryTicks; want *= 2 {
		ticks := 0
		for ; o.retries[2].ticksLeft > 0; ticks++ {
			if o.empty() {
				t.Fatal("the loop may rest before raft is told")
			}
			m.loop.tickTransfers()
		}
		if !o.empty() { // the member may be gone for good
			t.Fatalf("the loop does not rest after raft was told: %+v", o)
		}
		if ticks != want {
			t.Fatalf("raft is told after %d ticks, want %d", ticks, want)
		}
		o.active[2] = true
		m.try(m.loop.TransferEnded(2, false))
	}
	s.run("handover 1 to=2")
	if m.core.Leads() {
		t.Fatal("member 1 still leads")
	}
	o.wanted, o.active[2] = []uint64{3}, true
	if said := s.run("tick 1"); !strings.Contains(said, "cancel all transfers") || len(o.wanted)+len(o.retries) > 0 {
		t.Fatalf("transfers go on without leadership: %+v", o)
	}
	if err := m.loop.sendCheckpoints([]uint64{3}); err != nil || len(o.wanted) > 0 {
		t.Fatalf("%v wait for a checkpoint of a member that does not lead, %v", o.wanted, err)
	}
}

// received returns a checkpoint of member 2 in a later term, of which member 2 is the leader.
func (m *scriptMember) received(index uint64) *Received {
	meta := m.core.Meta()
	meta.Index, meta.Term = index, 2
	return &Received{From: 2, Term: 2, Meta: meta, Path: "received", Install: func() error { return nil }}
}

// An installed checkpoint takes the place of the checkpoint file: until then no checkpoint of our
// own is begun.
func TestC4_NoOwnCheckpointDuringInstall(t *testing.T) {
	s := newScript(t)
	s.run("members 1 2")
	s.run("hang 1")
	m := s.members[1]
	m.loop.CheckpointReceived(m.received(100))
	// Our own was being written, and enough for the next one was applied meanwhile.
	m.loop.checkpoint.writing, m.loop.checkpoint.schedule.requests = true, m.loop.cfg.CheckpointRequests
	m.turn()
	if m.loop.install.arrived == nil || m.loop.install.installing {
		t.Fatal("a checkpoint is installed while our own is being written")
	}
	m.try(m.loop.CheckpointWritten(1, 0))
	m.turn()
	if !m.loop.install.installing || m.loop.checkpoint.writing || m.loop.Checkpoint() {
		t.Fatalf("installing %v, writing a checkpoint of the old state %v", m.loop.install.installing, m.loop.checkpoint.writing)
	}
	if said := s.run("resume 1"); !strings.Contains(said, "1: switch to the checkpoint of entry 100\n") || m.core.Applied() != 100 || m.loop.LastCheckpoint() != 100 {
		t.Errorf("applied %d, last checkpoint %d:\n%s", m.core.Applied(), m.loop.LastCheckpoint(), said)
	}
}

// A checkpoint that raft has no use for is discarded, and one of another ensemble is not even
// offered.
func TestInstall_UselessCheckpointsAreDiscarded(t *testing.T) {
	s := newScript(t)
	s.run("members 1 2")
	m := s.members[1]
	foreign := m.received(100)
	foreign.Meta.Cluster++
	for _, r := range []*Received{m.received(1), foreign} { // the first is already applied
		m.loop.CheckpointReceived(r)
		s.lines = nil
		m.turn()
		if said := s.text(); !strings.Contains(said, "discard the checkpoint") || m.core.Applied() != 1 {
			t.Errorf("a checkpoint of entry %d is not discarded:\n%s", r.Meta.Index, said)
		}
	}
	if _, err := m.loop.beginInstall(1); err == nil {
		t.Error("a checkpoint that is not there was installed")
	}
	for range 5 * core.ElectionTicks { // what comes later is not affected
		s.tick(nil)
	}
	if m.core.Leader() == 0 {
		t.Errorf("no election was won:\n%s", s.text())
	}
}
