package consensus

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/gozkd/gozkd/consensus/internal/checkpoint"
	"go.etcd.io/raft/v3"
)

// passive is a member of two with data that does not run, so that its parts can be called by hand.
func passive(t *testing.T) *Node {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n, err := Open(Config{Dir: t.TempDir(), StateMachine: &list{}, ID: 1, Voters: []uint64{1, 2}, PeerListener: l, CheckpointRequests: 10})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	n.out.begin(ctx)
	n.life = ctx
	t.Cleanup(func() {
		cancel()
		n.out.cancel()
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := n.form(); err != nil {
		t.Fatal(err)
	}
	return n
}

// A second member needs a newer checkpoint while the file is read for the first: bbolt would wait for the lock, and fail.
func TestSend_ANewCheckpointWaitsForTheReaders(t *testing.T) {
	n := passive(t)
	n.core.role = raft.StateLeader
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- n.checkpoints.stream(w, 1) }() // what startTransfers does, to a slow receiver
	if _, err := r.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	n.out.active[2] = true
	n.core.member.since[3] = n.core.applied + 5 // member 3 was let in behind the checkpoint on disk
	n.core.applied += 5
	if err := n.sendCheckpoints([]uint64{3}); err != nil {
		t.Fatal(err)
	}
	if n.checkpointing {
		t.Fatal("a checkpoint is being written while the file is read")
	}
	if err := r.CloseWithError(errors.New("gone")); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil {
		t.Fatal("the transfer went through")
	}
	if err := n.transferEnded(2, false); err != nil {
		t.Fatal(err)
	}
	if !n.checkpointing {
		t.Fatal("no new checkpoint is written")
	}
	n.background.Wait()
	for _, in := range n.inbox.take() {
		if in.err != nil || in.checkpoint != n.core.applied {
			t.Fatalf("the loop gets checkpoint %d, %v", in.checkpoint, in.err)
		}
	}
}

// A checkpoint that did not arrive is not sent again at once, and none goes out for one who does not lead.
func TestSend_FailuresRestAndTheLeadEnds(t *testing.T) {
	n := passive(t)
	n.core.role = raft.StateLeader
	n.out.active[2] = true
	if err := n.transferEnded(2, false); err != nil {
		t.Fatal(err)
	}
	for want := firstWait; want <= 4*firstWait; want *= 2 {
		ticks := 0
		for ; n.out.resting[2].left > 0; ticks++ {
			n.tickTransfers()
		}
		if ticks != want {
			t.Fatalf("raft is told after %d ticks, want %d", ticks, want)
		}
		n.out.active[2] = true
		if err := n.transferEnded(2, false); err != nil {
			t.Fatal(err)
		}
	}
	n.out.wanted, n.out.active[2] = []uint64{3}, true
	ctx := n.out.ctx
	n.core.role = raft.StateFollower
	n.tickTransfers()
	if ctx.Err() == nil || len(n.out.wanted)+len(n.out.resting) > 0 {
		t.Fatalf("transfers go on without the lead: %+v", n.out)
	}
	if err := n.sendCheckpoints([]uint64{3}); err != nil || len(n.out.wanted) > 0 {
		t.Fatalf("%v wait for a checkpoint of one who does not lead, %v", n.out.wanted, err)
	}
}

// What is installed takes the place of the checkpoint file: no checkpoint of our own is begun before that.
func TestC4_NoOwnCheckpointWhileOneIsInstalled(t *testing.T) {
	n := passive(t)
	meta := n.core.meta()
	meta.Index, meta.Term = 100, 2
	var b bytes.Buffer
	if err := checkpoint.WriteStream(&b, 2, meta.append(nil), (&list{}).CaptureAll().Range); err != nil {
		t.Fatal(err)
	}
	if err := n.receiveCheckpoint(2, &b); err != nil {
		t.Fatal(err)
	}
	// One was being written, and enough for the next was applied meanwhile.
	n.checkpointing, n.cadence.requests = true, 10
	n.inbox.put(input{checkpoint: 1})
	if err := n.receive(); err != nil {
		t.Fatal(err)
	}
	if !n.installing || n.checkpointing {
		t.Fatalf("installing %v, writing a checkpoint of the old state %v", n.installing, n.checkpointing)
	}
}

// Without a serial too, voters go only when those who come are enough.
func TestMembership_VotersStayUntilTheOthersAreReady(t *testing.T) {
	w := newWorld(t, 1, 3)
	w.calm(func() bool { l := w.leader(); return l != nil && l.core.current() })
	c := w.leader().core
	for _, voters := range [][]uint64{{c.id, 5, 6}, {4, 5, 6}} {
		c.setTarget(Target{Voters: voters})
		ready, all, quorum := c.progress(c.member.target)
		if cc := c.difference(c.member.target, ready, all || quorum); len(cc.GetChanges()) > 0 {
			t.Errorf("target %v with %v ready: %v", voters, ready, cc.GetChanges())
		}
	}
}
