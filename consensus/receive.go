package consensus

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/gozkd/gozkd/consensus/internal/checkpoint"
	"github.com/gozkd/gozkd/consensus/internal/core"
	"github.com/gozkd/gozkd/consensus/internal/turn"
	"github.com/gozkd/gozkd/internal/memberid"
)

var errBusy = errors.New("consensus: receive checkpoint: another one is being received; it will be sent again")

// receiveCheckpoint receives a checkpoint from another member, writes the pairs to a file of their
// own, and verifies them as they arrive. The loop learns of complete checkpoints only.
func (n *Node) receiveCheckpoint(from uint64, stream io.Reader) error {
	if !n.transfers.receiving.CompareAndSwap(false, true) {
		return errBusy
	}
	err := n.receiveAll(from, stream)
	if err != nil {
		n.transfers.receiving.Store(false) // otherwise the loop does it, when the checkpoint is installed or discarded
	}
	return err
}

func (n *Node) receiveAll(from uint64, stream io.Reader) error {
	r, err := checkpoint.ReadStream(stream)
	if err != nil {
		return err
	}
	meta, err := core.DecodeMeta(r.Meta)
	if err != nil {
		return err
	}
	if err := n.cfg.Levels.Check(meta.Level, fmt.Sprintf("the checkpoint of member %d",
		memberid.Number(from))); err != nil {
		return err
	}
	got := &turn.Received{From: from, Term: r.Term, Meta: meta}
	got.Meta.Member = n.cfg.ID
	n.cfg.Logger.Info("receiving a checkpoint", "from", memberid.Number(from), "index", meta.Index)
	if n.inMemory() {
		got.Install, err = restoreFrom(r.Range, n.cfg.StateMachine)
	} else {
		got.Path = n.cfg.checkpointPath() + fmt.Sprintf(".from-%d", from)
		err = n.receiveFile(got, r.Range)
	}
	if err != nil {
		n.transfers.broken.Add(1)
		n.cfg.Logger.Warn("a checkpoint did not arrive",
			"from", memberid.Number(from), "index", meta.Index, "error", err)
		return err
	}
	n.inbox.events.put(nodeCall(func(n *Node) error {
		n.loop.CheckpointReceived(got)
		return nil
	}))
	return nil
}

// receiveFile writes the pairs to a new checkpoint file while the state machine reads them.
func (n *Node) receiveFile(got *turn.Received, pairs checkpoint.Pairs) error {
	if err := checkpoint.Remove(n.cfg.DirFS, got.Path); err != nil {
		return err
	}
	var err error
	got.Install, err = restoreFrom(func(visit func(k, v []byte) error) error {
		return checkpoint.Create(n.cfg.DirFS, got.Path, got.Meta.Append(nil), func(put func(k, v []byte) error) error {
			return pairs(func(k, v []byte) error {
				if err := put(k, v); err != nil {
					return err
				}
				return visit(k, v)
			})
		}, nil)
	}, n.cfg.StateMachine)
	if err != nil {
		return errors.Join(err, checkpoint.Remove(n.cfg.DirFS, got.Path))
	}
	return nil
}

// removeReceived removes the files that a crash left of checkpoints that were being received.
func (n *Node) removeReceived() error {
	dir, base := filepath.Split(n.cfg.checkpointPath())
	names, err := n.cfg.DirFS.ReadDir(filepath.Clean(dir))
	for _, name := range names {
		if strings.HasPrefix(name, base+".from-") {
			err = errors.Join(err, checkpoint.Remove(n.cfg.DirFS, filepath.Join(dir, name)))
		}
	}
	return err
}
