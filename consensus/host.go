package consensus

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/consensus/internal/checkpoint"
	"github.com/gozkd/gozkd/consensus/internal/core"
	"github.com/gozkd/gozkd/consensus/internal/turn"
	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/internal/vfs"
)

// loopHost is the Node as its loop sees it: the real clock, disk, network and state machine.
type loopHost struct{ n *Node }

func (h loopHost) Now() time.Time       { return h.n.cfg.Now() }
func (h loopHost) Monotonic() time.Time { return time.Now() }

func (h loopHost) Send(m core.Message) {
	if h.n.peerNet != nil {
		h.n.network.send(h.n.peerNet, &m)
	}
}

func (h loopHost) Flush() { h.n.network.flush() }

// WriteLog writes on the loop's goroutine if there is nothing else to do. With other members there
// always is: the members wait for this member's heartbeats, or for its answers to theirs.
func (h loopHost) WriteLog(work []turn.LogWork, idle bool) error {
	return h.n.log.write(work, idle && h.n.cfg.PeerListener == nil && h.n.inbox.empty())
}

func (h loopHost) Apply(batches []core.Batch) { h.n.cfg.StateMachine.Apply(batches) }

func (h loopHost) Reconciled(r core.Reconciled) { h.n.cfg.OnReconciled(r) }

func (h loopHost) FormLog(first core.LogState) error {
	if h.n.inMemory() {
		return nil
	}
	return h.n.log.begin(first)
}

func (h loopHost) FormCheckpoint(meta core.Meta) error {
	if len(meta.Conf.GetVoters()) > 1 {
		h.n.cfg.Logger.Info("forming a new ensemble", "voters", memberid.Numbers(meta.Conf.GetVoters()))
		if missing := h.n.core.Admission.MissingFounders(); len(missing) > 0 {
			h.n.cfg.Logger.Warn("A NEW, EMPTY ENSEMBLE BEGINS WITHOUT SOME OF ITS VOTERS. If one of them has data, stop all servers now: "+
				"empty the others' data directories, and start them with db.autocreate=false, so that they join the server that has the data",
				"not_heard", memberid.Numbers(missing), "waited_ticks", h.n.cfg.FormTicks)
		}
	}
	if h.n.inMemory() {
		return nil
	}
	return h.n.checkpoints.write(h.n.loop.LastCheckpoint(), meta, h.n.cfg.StateMachine.Capture())
}

// descriptorPause is the time between attempts to write a checkpoint without a file descriptor.
const descriptorPause = time.Second

// WriteCheckpoint writes on a goroutine of its own. A checkpoint that can't be written stops the
// node, except for want of a file descriptor, which others give back sooner or later: then the file
// was not opened, and is tried again. Nothing is lost, since the state is still in the log, but the
// log would grow without bound.
func (h loopHost) WriteCheckpoint(base uint64, meta core.Meta) {
	n, changes, life := h.n, h.n.cfg.StateMachine.Capture(), h.n.transfers.life
	n.transfers.background.Add(1)
	// Ends when the checkpoint is written or, while a descriptor is missing, when the loop ends.
	// Run waits for this goroutine.
	go func() {
		defer n.transfers.background.Done()
		start := time.Now()
		err := n.checkpoints.write(base, meta, changes)
		for vfs.NoDescriptor(err) {
			n.cfg.Logger.Warn("no checkpoint for want of a file descriptor: raise the limit of this process (ulimit -n), or lower maxCnxns", "error", err)
			select {
			case <-time.After(descriptorPause):
				err = n.checkpoints.write(base, meta, changes)
			case <-life.Done():
				return
			}
		}
		if err != nil {
			n.inbox.events.put(diskFailed{err})
			return
		}
		took := time.Since(start)
		if n.cfg.OnCheckpoint != nil {
			n.cfg.OnCheckpoint(took, changes.Len())
		}
		n.inbox.events.put(nodeCall(func(n *Node) error {
			n.cfg.Logger.Debug("checkpoint written", "index", meta.Index)
			return n.loop.CheckpointWritten(meta.Index, took)
		}))
	}()
}

// StartTransfer sends the file of the checkpoint or, in memory, the present state, whose index is
// index.
func (h loopHost) StartTransfer(to []uint64, index uint64) {
	n, term, ctx := h.n, h.n.core.RaftTerm(), h.n.transfers.ctx
	write := func(w io.Writer) error { return n.checkpoints.stream(w, term) }
	if n.inMemory() {
		meta, state := n.core.Meta(), n.cfg.StateMachine.CaptureAll()
		write = func(w io.Writer) error { return checkpoint.WriteStream(w, term, meta.Append(nil), state.Range) }
	}
	for _, id := range to {
		n.cfg.Logger.Info("sending a checkpoint", "to", memberid.Number(id), "index", index)
		n.transfers.background.Add(1)
		// Ends with the transfer, or with the context of Run, which waits for it.
		go func() {
			defer n.transfers.background.Done()
			err := n.peerNet.SendCheckpoint(ctx, id, write)
			if err != nil && !errors.Is(err, context.Canceled) {
				n.cfg.Logger.Warn("a checkpoint was not delivered", "to", memberid.Number(id), "error", err)
			}
			n.inbox.events.put(nodeCall(func(n *Node) error {
				if err == nil {
					n.peers.transferSucceeded(id)
				}
				return n.loop.TransferEnded(id, err == nil)
			}))
		}()
	}
}

func (h loopHost) CancelTransfers() { h.n.transfers.restart() }

func (h loopHost) Discard(r *turn.Received) error {
	defer h.n.transfers.receiving.Store(false)
	if r.Path == "" {
		return nil
	}
	return checkpoint.Remove(h.n.cfg.DirFS, r.Path)
}

func (h loopHost) Installed(r *turn.Received, lost []any) {
	h.n.transfers.receiving.Store(false)
	for _, ref := range lost {
		h.n.cfg.OnLost(ref)
	}
	h.n.cfg.Logger.Info("installed a checkpoint", "from", memberid.Number(r.From), "index", r.Meta.Index)
}

// checkpointTransfers are the goroutines that write, send and receive checkpoints.
type checkpointTransfers struct {
	life       context.Context // until the loop ends
	ctx        context.Context // of the transfers to other members, until leadership is lost
	cancel     context.CancelFunc
	background sync.WaitGroup // awaited by Run
	// receiving: a checkpoint is being received, or waits, or is being installed. Others are
	// refused meanwhile: they would use the same file.
	receiving atomic.Bool
	broken    atomic.Int64 // counts checkpoints that did not arrive
}

func (t *checkpointTransfers) begin(life context.Context) {
	t.life = life
	t.ctx, t.cancel = context.WithCancel(life)
}

// restart cancels the transfers that are under way.
func (t *checkpointTransfers) restart() {
	t.cancel()
	t.ctx, t.cancel = context.WithCancel(t.life)
}
