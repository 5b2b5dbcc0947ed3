package consensus

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/gozkd/gozkd/consensus/internal/checkpoint"
)

var errBusy = errors.New("consensus: receive checkpoint: another one is being received; it will be sent again")

// received is a checkpoint of another member that is complete, verified, and ready to be installed.
type received struct {
	from, term  uint64 // the leader that sent it, and its term
	meta        checkpointMeta
	path        string // of the file; empty in memory
	install     func() // makes it the state of the state machine
	incarnation uint64 // of this server's stream from then on
}

// message returns the message with which raft learns of the checkpoint.
func (r *received) message(to uint64) message {
	return message{to: to, from: r.from, raft: &raftpb.Message{
		Type: raftpb.MsgSnap.Enum(), To: &to, From: &r.from, Term: &r.term, Snapshot: snapshotOf(r.meta.Index, r.meta.Term, r.meta.Conf),
	}}
}

// receiveCheckpoint receives a checkpoint from another member. It is written to a file of its own and
// verified while it arrives. The loop learns of it after all of it was received.
func (n *Node) receiveCheckpoint(from uint64, stream io.Reader) error {
	if !n.receiving.CompareAndSwap(false, true) {
		return errBusy
	}
	err := n.receiveAll(from, stream)
	if err != nil {
		n.receiving.Store(false) // otherwise the loop does it, when the checkpoint is installed or discarded
	}
	return err
}

func (n *Node) receiveAll(from uint64, stream io.Reader) error {
	r, err := checkpoint.ReadStream(stream)
	if err != nil {
		return err
	}
	meta, err := decodeMeta(r.Meta)
	if err != nil {
		return err
	}
	got := &received{from: from, term: r.Term, meta: meta}
	got.meta.Member = n.cfg.ID
	n.cfg.Logger.Info("receiving a checkpoint", "from", from, "index", meta.Index)
	if n.cfg.Dir != "" {
		got.path = n.cfg.checkpointPath() + fmt.Sprintf(".from-%d", from)
		err = n.receiveFile(got, r.Range)
	} else {
		got.install, err = restoreFrom(r.Range, n.cfg.StateMachine)
	}
	if err != nil {
		n.broken.Add(1)
		n.cfg.Logger.Warn("a checkpoint did not arrive", "from", from, "index", meta.Index, "error", err)
		return err
	}
	n.inbox.put(input{received: got})
	return nil
}

// receiveFile writes the pairs to a new checkpoint file while the state machine reads them.
func (n *Node) receiveFile(got *received, pairs checkpoint.Pairs) error {
	if err := checkpoint.Remove(got.path); err != nil {
		return err
	}
	var err error
	got.install, err = restoreFrom(func(visit func(k, v []byte) error) error {
		return checkpoint.Create(got.path, got.meta.append(nil), func(put func(k, v []byte) error) error {
			return pairs(func(k, v []byte) error {
				if err := put(k, v); err != nil {
					return err
				}
				return visit(k, v)
			})
		}, nil)
	}, n.cfg.StateMachine)
	if err != nil {
		return errors.Join(err, checkpoint.Remove(got.path))
	}
	return nil
}

// removeReceived removes the files that a crash left of checkpoints that were being received.
func (n *Node) removeReceived() error {
	left, err := filepath.Glob(n.cfg.checkpointPath() + ".from-*")
	for _, path := range left {
		err = errors.Join(err, checkpoint.Remove(path))
	}
	return err
}
