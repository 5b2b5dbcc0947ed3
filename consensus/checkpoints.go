package consensus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/consensus/internal/checkpoint"
	"github.com/gozkd/gozkd/consensus/internal/core"
	"github.com/gozkd/gozkd/consensus/internal/turn"
	"github.com/gozkd/gozkd/consensus/peer"
	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/internal/vfs"
)

// checkpoints is a member's checkpoint file, and the goroutines that write, send and receive
// checkpoints. The loop calls the methods, except for receive, which the network calls. Results go
// to the inbox. The loop writes one checkpoint at a time, and none while a checkpoint is being sent
// or installed. The next checkpoint is received only after the last one is installed, discarded or
// given up.
type checkpoints struct {
	cfg        *Config
	inbox      *inbox
	file       checkpointFile
	place      *place          // nil: in memory
	life       context.Context // until the loop ends
	sends      context.Context // of the transfers to other members, until leadership is lost
	cancelSend context.CancelFunc
	background sync.WaitGroup           // awaited by Run
	received   atomic.Pointer[received] // not nil: it arrives, or waits, or is being installed
	broken     atomic.Int64             // counts checkpoints that did not arrive
	// release gives back what Free has locked. The log's goroutine sets it, and Run calls it when
	// that goroutine has ended.
	release func()
}

// begin is called when the loop begins. Transfers end with life at the latest.
func (c *checkpoints) begin(life context.Context) {
	c.life = life
	c.sends, c.cancelSend = context.WithCancel(life)
}

// writePause is the time between attempts to write a checkpoint that others prevent.
const writePause = time.Second

// write writes a checkpoint on a goroutine of its own. A checkpoint that can't be written stops the
// node, except for want of a file descriptor or of the file's lock, which others give back sooner
// or later: then nothing was written, and write tries again. Nothing is lost meanwhile, since the
// state is still in the log, but the log grows.
func (c *checkpoints) write(base uint64, meta core.Meta) {
	changes, life := c.cfg.StateMachine.Capture(), c.life
	// Ends when the checkpoint is written or, while others prevent that, when the loop ends.
	c.background.Go(func() {
		start := time.Now()
		err := moved(c.place.lock.InPlace()) // or the changes would go to a file that somebody else has put there
		if err == nil {
			err = c.file.write(base, meta, changes)
		}
		for vfs.NoDescriptor(err) || errors.Is(err, checkpoint.ErrInUse) {
			why := "for want of a file descriptor: raise the limit of this process (ulimit -n), or lower maxCnxns"
			if !vfs.NoDescriptor(err) {
				why = "while a program reads the last one, so the log grows: end that program"
			}
			c.cfg.Logger.Warn("no checkpoint "+why, "error", err)
			select {
			case <-time.After(writePause):
				err = c.file.write(base, meta, changes)
			case <-life.Done():
				return
			}
		}
		if err != nil {
			c.inbox.events.put(diskFailed{err})
			return
		}
		took := time.Since(start)
		if c.cfg.OnCheckpoint != nil {
			c.cfg.OnCheckpoint(took, changes.Len())
		}
		c.inbox.events.put(nodeCall(func(n *Node) error {
			n.cfg.Logger.Debug("checkpoint written", "index", meta.Index)
			return n.loop.CheckpointWritten(meta.Index, took)
		}))
	})
}

// send sends the file of the checkpoint or, in memory, the present state, which meta describes. The
// index is that of the checkpoint.
func (c *checkpoints) send(network *peer.Network, to []uint64, index, term uint64, meta core.Meta) {
	ctx, write := c.sends, func(w io.Writer) error { return c.file.stream(w, term) }
	if c.cfg.inMemory() {
		state := c.cfg.StateMachine.CaptureAll()
		write = func(w io.Writer) error { return checkpoint.WriteStream(w, term, meta.Append(nil), state.Range) }
	}
	for _, id := range to {
		c.cfg.Logger.Info("sending a checkpoint", "to", memberid.Number(id), "index", index)
		// Ends with the transfer, or with the context of Run.
		c.background.Go(func() {
			err := network.SendCheckpoint(ctx, id, write)
			if err != nil && !errors.Is(err, context.Canceled) {
				c.cfg.Logger.Warn("a checkpoint was not delivered", "to", memberid.Number(id), "error", err)
			}
			c.inbox.events.put(nodeCall(func(n *Node) error {
				if err == nil {
					n.peers.received++
					n.peers.inStep[id] = true // no tick may have seen the transfer
				}
				return n.loop.TransferEnded(id, err == nil)
			}))
		})
	}
}

var errBusy = errors.New("consensus: receive checkpoint: another one is being received; it will be sent again")

// received is a checkpoint from another member.
type received struct {
	term    uint64 // of the leader that sends it
	stream  io.Closer
	arrived chan struct{} // closed when it has arrived, or has failed
}

// receive receives a checkpoint from another member, writes the pairs to a file of their own, and
// verifies them as they arrive. The loop learns of complete checkpoints only. receive ends the
// arrival of an earlier leader's checkpoint: that leader may stand still, while the next one needs
// this member for a majority.
func (c *checkpoints) receive(from uint64, stream io.ReadCloser) error {
	r, err := checkpoint.ReadStream(stream)
	if err != nil {
		return err
	}
	this := &received{r.Term, stream, make(chan struct{})}
	defer close(this.arrived)
	if before := c.received.Load(); before != nil && before.term < this.term {
		_ = before.stream.Close() // the error would be that of the connection
		<-before.arrived
	}
	if !c.received.CompareAndSwap(nil, this) {
		return errBusy
	}
	if err = c.receiveAll(from, r); err != nil {
		c.received.Store(nil) // otherwise the loop does it, when the checkpoint is installed or discarded
	}
	return err
}

func (c *checkpoints) receiveAll(from uint64, r *checkpoint.StreamReader) error {
	meta, err := core.DecodeMeta(r.Meta)
	if err != nil {
		return err
	}
	if err := c.cfg.Levels.Check(meta.Level, fmt.Sprintf("the checkpoint of member %d",
		memberid.Number(from))); err != nil {
		return err
	}
	got := &turn.Received{From: from, Term: r.Term, Meta: meta}
	got.Meta.Member = c.cfg.ID
	c.cfg.Logger.Info("receiving a checkpoint", "from", memberid.Number(from), "index", meta.Index)
	if c.cfg.inMemory() {
		var install func()
		install, err = restoreFrom(r.Range, c.cfg.StateMachine)
		got.Install = func() error { install(); return nil }
	} else {
		got.Path = c.cfg.checkpointPath() + fmt.Sprintf(".from-%d", from)
		err = c.receiveFile(got, r.Range)
	}
	if err != nil {
		c.broken.Add(1)
		c.cfg.Logger.Warn("a checkpoint did not arrive",
			"from", memberid.Number(from), "index", meta.Index, "error", err)
		return err
	}
	c.inbox.events.put(nodeCall(func(n *Node) error {
		n.loop.CheckpointReceived(got)
		return nil
	}))
	return nil
}

// receiveFile writes the pairs to a new checkpoint file while the state machine reads them. If they
// turn out to need more memory than there is beside the present state, the state machine reads the
// file when it is in its place, and the present state was dropped.
func (c *checkpoints) receiveFile(got *turn.Received, pairs checkpoint.Pairs) error {
	if err := checkpoint.Remove(c.cfg.DirFS, got.Path); err != nil {
		return err
	}
	crowded, bytes, keys := false, int64(0), 0
	var writeErr error
	install, err := restoreFrom(func(visit func(k, v []byte) error) error {
		writeErr = checkpoint.Create(c.cfg.DirFS, got.Path, got.Meta.Append(nil), func(put func(k, v []byte) error) error {
			return pairs(func(k, v []byte) error {
				if err := put(k, v); err != nil || crowded {
					return err
				}
				bytes, keys = bytes+int64(len(k)+len(v)), keys+1
				if crowded = c.cfg.Crowded(bytes, keys); crowded {
					return nil
				}
				return visit(k, v)
			})
		}, nil)
		return writeErr
	}, c.cfg.StateMachine)
	if crowded {
		install, err = nil, writeErr // the state machine has not seen everything
		got.Load = func() error { return c.loadInPlace(got) }
	}
	if err != nil {
		return errors.Join(err, checkpoint.Remove(c.cfg.DirFS, got.Path))
	}
	got.Install = func() error { install(); return nil }
	return nil
}

// loadInPlace reads a received checkpoint that is in its place. The log's goroutine calls it, so
// that the loop answers the leader meanwhile. Nothing is applied until the checkpoint is installed,
// because raft hands out no entries before.
func (c *checkpoints) loadInPlace(got *turn.Received) error {
	c.release = c.cfg.Free()
	later := &installLater{StateMachine: c.cfg.StateMachine}
	_, found, err := c.file.load(checkpoint.Newest, c.cfg.Levels, later)
	if err == nil && !found {
		err = fmt.Errorf("consensus: the checkpoint %s, received just now, is gone", c.file.path)
	}
	got.Install = func() error { later.install(); return nil }
	return err
}

// installLater is a state machine whose state can be read on another goroutine than the loop's.
type installLater struct {
	StateMachine
	install func()
}

func (l *installLater) Restore(state iter.Seq2[[]byte, []byte]) (install func(), err error) {
	l.install, err = l.StateMachine.Restore(state)
	return func() {}, err
}

// removeReceived removes the files that a crash left of checkpoints that were being received.
func (c *checkpoints) removeReceived() error {
	dir, base := filepath.Split(c.cfg.checkpointPath())
	names, err := c.cfg.DirFS.ReadDir(filepath.Clean(dir))
	for _, name := range names {
		if strings.HasPrefix(name, base+".from-") {
			err = errors.Join(err, checkpoint.Remove(c.cfg.DirFS, filepath.Join(dir, name)))
		}
	}
	return err
}

// discard drops a received checkpoint that is of no use.
func (c *checkpoints) discard(r *turn.Received) error {
	defer c.received.Store(nil)
	if r.Path == "" {
		return nil
	}
	return checkpoint.Remove(c.cfg.DirFS, r.Path)
}
