package consensus

import (
	"time"

	"github.com/gozkd/gozkd/consensus/internal/core"
	"github.com/gozkd/gozkd/consensus/internal/turn"
	"github.com/gozkd/gozkd/internal/memberid"
)

// loopHost is the Node as its loop sees it: the real clock, disk, network and state machine.
type loopHost struct{ n *Node }

func (h loopHost) Now() time.Time       { return h.n.cfg.Now() }
func (h loopHost) Monotonic() time.Time { return time.Now() }

func (h loopHost) Send(m core.Message) {
	if network := h.n.network.get(); network != nil {
		h.n.network.send(network, &m)
	}
}

func (h loopHost) Flush() { h.n.network.flush() }

// WriteLog writes on the loop's goroutine if there is nothing else to do. With other members there
// always is: the members wait for this member's heartbeats, or for its answers to theirs.
func (h loopHost) WriteLog(work []turn.LogWork, idle bool) error {
	return h.n.log.write(work, idle && h.n.cfg.PeerListener == nil && h.n.inbox.empty())
}

func (h loopHost) Apply(batches []core.Batch) {
	requests := 0
	for i := range batches {
		requests += len(batches[i].Requests)
	}
	h.n.turns.noteRequests(requests)
	h.n.cfg.StateMachine.Apply(batches)
}

func (h loopHost) Reconciled(r core.Reconciled) { h.n.cfg.OnReconciled(r) }

func (h loopHost) FormLog(first core.LogState) error {
	if h.n.cfg.inMemory() {
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
	if h.n.cfg.inMemory() {
		return nil
	}
	return h.n.checkpoints.file.write(h.n.loop.LastCheckpoint(), meta, h.n.cfg.StateMachine.Capture())
}

func (h loopHost) WriteCheckpoint(base uint64, meta core.Meta) { h.n.checkpoints.write(base, meta) }

func (h loopHost) StartTransfer(to []uint64, index uint64) {
	c := h.n.core
	h.n.checkpoints.send(h.n.network.get(), to, index, c.RaftTerm(), c.Meta())
}

func (h loopHost) CancelTransfers() {
	h.n.checkpoints.cancelSend()
	h.n.checkpoints.begin(h.n.checkpoints.life)
}

func (h loopHost) Discard(r *turn.Received) error { return h.n.checkpoints.discard(r) }

func (h loopHost) Installed(r *turn.Received, lost []any) {
	h.n.checkpoints.received.Store(nil)
	for _, ref := range lost {
		h.n.cfg.OnLost(ref)
	}
	h.n.cfg.Logger.Info("installed a checkpoint", "from", memberid.Number(r.From), "index", r.Meta.Index)
}
