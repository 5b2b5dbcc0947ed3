package consensus

import (
	"context"
	"errors"
	"io"
	"slices"

	"go.etcd.io/raft/v3"

	"github.com/gozkd/gozkd/consensus/internal/checkpoint"
)

const (
	// firstWait and lastWait are for how many ticks a member is left alone after a checkpoint did not get there: the time doubles.
	firstWait = 2 * electionTicks
	lastWait  = 64 * electionTicks
)

// outgoing are the checkpoints for other members. They are the leader's affair, and end with its lead: raft would ignore them, and the
// next leader's could not get in meanwhile.
type outgoing struct {
	wanted  []uint64         // members that wait for one to be started
	active  map[uint64]bool  // members that one is on its way to
	resting map[uint64]*rest // members that it did not get to
	ctx     context.Context
	cancel  context.CancelFunc
}

// rest is the time until raft is told of a failure, and tries again.
type rest struct{ wait, left int }

func (o *outgoing) begin(ctx context.Context) {
	o.ctx, o.cancel = context.WithCancel(ctx)
	o.wanted, o.active, o.resting = nil, make(map[uint64]bool), make(map[uint64]*rest)
}

// sendCheckpoints starts what the core asked for. The checkpoint on disk will do if the log goes on behind it, and if it knows those
// that it is for; else there has to be a new one first, which has to wait until nobody reads the file.
func (n *Node) sendCheckpoints(to []uint64) error {
	o := &n.out
	if n.core.role != raft.StateLeader {
		o.wanted = nil
		return nil
	}
	for _, id := range to {
		if !o.active[id] && !slices.Contains(o.wanted, id) {
			o.wanted = append(o.wanted, id)
		}
	}
	if len(o.wanted) == 0 || n.checkpointing || n.installing {
		return nil // the end of these comes back here
	}
	if n.log == nil {
		meta, changes := n.core.meta(), n.cfg.StateMachine.CaptureAll()
		n.startTransfers(meta, changes.Range)
		return nil
	}
	first, err := n.storage.FirstIndex()
	if err != nil {
		return err
	}
	unknown := func(id uint64) bool { return !n.core.knows(n.lastCheckpoint, id) }
	if n.lastCheckpoint+1 < first || slices.ContainsFunc(o.wanted, unknown) {
		if len(o.active) == 0 {
			n.checkpoint()
		}
		return nil
	}
	// The meta is read together with the state; until then only its index counts.
	n.startTransfers(checkpointMeta{Index: n.lastCheckpoint}, nil)
	return nil
}

// startTransfers sends a checkpoint to all that wait for one: these pairs, or what the file holds.
func (n *Node) startTransfers(meta checkpointMeta, pairs checkpoint.Pairs) {
	o, term, ctx := &n.out, n.core.raftTerm, n.out.ctx
	for _, to := range o.wanted {
		n.core.transferStarted(to, meta.Index)
		o.active[to] = true
		n.cfg.Logger.Info("sending a checkpoint", "to", to, "index", meta.Index)
		n.background.Add(1)
		// Ends with the transfer, or with the context of Run, which waits for it.
		go func() {
			defer n.background.Done()
			err := n.network.SendCheckpoint(ctx, to, func(w io.Writer) error {
				if pairs != nil {
					return checkpoint.WriteStream(w, term, meta.append(nil), pairs)
				}
				return n.checkpoints.stream(w, term)
			})
			if err != nil && !errors.Is(err, context.Canceled) {
				n.cfg.Logger.Warn("a checkpoint was not delivered", "to", to, "error", err)
			}
			n.inbox.put(input{transferEnded: to, ok: err == nil})
		}()
	}
	o.wanted = nil
}

// transferEnded tells raft, at once or after some rest, and starts what had to wait.
func (n *Node) transferEnded(to uint64, ok bool) error {
	o := &n.out
	delete(o.active, to)
	r := o.resting[to]
	switch {
	case ok:
		delete(o.resting, to)
		n.counted.Checkpoints++
		if n.inStep != nil { // a tick may not have seen that it was being sent
			n.inStep[to] = true
		}
		n.core.transferEnded(to, true)
	case n.core.role != raft.StateLeader:
	case r == nil:
		o.resting[to] = &rest{firstWait, firstWait}
	default:
		r.wait = min(2*r.wait, lastWait)
		r.left = r.wait
	}
	return n.sendCheckpoints(nil)
}

// tickTransfers lets raft try again where a checkpoint did not get there, and gives up what the loss of the lead made useless.
func (n *Node) tickTransfers() {
	o := &n.out
	if n.core.role != raft.StateLeader {
		if len(o.active)+len(o.wanted)+len(o.resting) > 0 {
			o.wanted = nil
			clear(o.resting)
			o.cancel()
			o.ctx, o.cancel = context.WithCancel(n.life)
		}
		return
	}
	for to, r := range o.resting {
		if r.left == 0 {
			continue // it was tried again
		}
		if r.left--; r.left == 0 {
			n.core.transferEnded(to, false)
		}
	}
}
