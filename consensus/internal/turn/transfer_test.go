package turn

import (
	"testing"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/gozkd/gozkd/consensus/internal/core"
)

// A second member needs a newer checkpoint while the file is read for the first one. The writer
// would have to wait for the readers' lock, so the new checkpoint must not begin before the
// transfer ends.
func TestTransfer_NewCheckpointWaitsForReaders(t *testing.T) {
	h := newTestHost(t)
	h.lead()
	h.loop.transfers.active[2] = true
	h.core.SetTarget(core.Target{Voters: []uint64{1, 2}, Learners: []uint64{3}}) // after the checkpoint on disk
	h.settle()
	h.acknowledge()
	if h.core.CheckpointKnows(h.loop.LastCheckpoint(), 3) {
		t.Fatal("the first checkpoint knows member 3")
	}
	if err := h.loop.sendCheckpoints([]uint64{3}); err != nil {
		t.Fatal(err)
	}
	if len(h.checkpoints) > 0 {
		t.Fatal("a checkpoint is being written while the file is read")
	}
	if err := h.loop.TransferEnded(2, false); err != nil {
		t.Fatal(err)
	}
	if len(h.checkpoints) != 1 || h.checkpoints[0] != h.core.Applied() {
		t.Fatalf("checkpoints %v are being written, want one of index %d", h.checkpoints, h.core.Applied())
	}
	if err := h.loop.CheckpointWritten(h.checkpoints[0], 0); err != nil {
		t.Fatal(err)
	}
	if len(h.transfers) != 1 || h.transfers[0] != 3 {
		t.Errorf("transfers to %v have begun, want one to member 3", h.transfers)
	}
}

// A checkpoint that did not arrive is not sent again at once, and a member that does not lead sends
// none.
func TestTransfer_FailuresRestAndLeadershipEnds(t *testing.T) {
	h := newTestHost(t)
	h.lead()
	o := &h.loop.transfers
	o.active[2] = true
	if err := h.loop.TransferEnded(2, false); err != nil {
		t.Fatal(err)
	}
	for want := firstRetryTicks; want <= 4*firstRetryTicks; want *= 2 {
		ticks := 0
		for ; o.retries[2].ticksLeft > 0; ticks++ {
			if o.empty() {
				t.Fatal("the loop may rest before raft is told")
			}
			h.loop.tickTransfers()
		}
		if !o.empty() { // the member may be gone for good
			t.Fatalf("the loop does not rest after raft was told: %+v", o)
		}
		if ticks != want {
			t.Fatalf("raft is told after %d ticks, want %d", ticks, want)
		}
		o.active[2] = true
		if err := h.loop.TransferEnded(2, false); err != nil {
			t.Fatal(err)
		}
	}
	o.wanted, o.active[2] = []uint64{3}, true
	h.followAnother()
	h.loop.tickTransfers()
	if h.cancelled != 1 || len(o.wanted)+len(o.retries) > 0 {
		t.Fatalf("transfers go on without leadership: %+v", o)
	}
	if err := h.loop.sendCheckpoints([]uint64{3}); err != nil || len(o.wanted) > 0 {
		t.Fatalf("%v wait for a checkpoint of a member that does not lead, %v", o.wanted, err)
	}
}

// received returns a checkpoint of member 2 in a later term, of which member 2 is the leader.
func (h *testHost) received(index uint64) *Received {
	meta := h.core.Meta()
	meta.Index, meta.Term = index, 2
	return &Received{From: 2, Term: 2, Meta: meta, Path: "received", Install: func() {}}
}

// An installed checkpoint takes the place of the checkpoint file: until then no checkpoint of our
// own is begun.
func TestC4_NoOwnCheckpointDuringInstall(t *testing.T) {
	h := newTestHost(t)
	h.loop.CheckpointReceived(h.received(100))
	// Our own was being written, and enough for the next one was applied meanwhile.
	h.loop.checkpoint.writing, h.loop.checkpoint.schedule.requests = true, 10
	if err := h.loop.Turn(); err != nil {
		t.Fatal(err)
	}
	if h.loop.install.arrived == nil || h.loop.install.installing {
		t.Fatal("a checkpoint is installed while our own is being written")
	}
	if err := h.loop.CheckpointWritten(1, 0); err != nil {
		t.Fatal(err)
	}
	if err := h.loop.Turn(); err != nil {
		t.Fatal(err)
	}
	if !h.loop.install.installing || h.loop.checkpoint.writing || h.loop.Checkpoint() {
		t.Fatalf("installing %v, writing a checkpoint of the old state %v", h.loop.install.installing, h.loop.checkpoint.writing)
	}
	h.write()
	if len(h.installed) != 1 || h.core.Applied() != 100 || h.loop.LastCheckpoint() != 100 {
		t.Errorf("installed %v, applied %d, last checkpoint %d", h.installed, h.core.Applied(), h.loop.LastCheckpoint())
	}
}

// A checkpoint that raft has no use for is discarded, and one of another ensemble is not even
// offered.
func TestInstall_UselessCheckpointsAreDiscarded(t *testing.T) {
	h := newTestHost(t)
	h.loop.CheckpointReceived(h.received(1)) // already applied
	h.settle()
	if h.discarded != 1 {
		t.Errorf("%d checkpoints were discarded, want 1", h.discarded)
	}
	if _, err := h.loop.beginInstall(1); err == nil {
		t.Error("a checkpoint that is not there was installed")
	}
	for range 2 * core.ElectionTicks { // what comes later is not affected
		h.loop.Tick()
	}
	h.step(2, &raftpb.Message{Type: raftpb.MsgHeartbeat.Enum(), Term: new(uint64)})
}
