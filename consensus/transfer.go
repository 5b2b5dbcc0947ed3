package consensus

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/gozkd/gozkd/internal/vfs"
)

// A checkpoint on its way between members: docs/reference/formats.md, "Checkpoint stream".

const (
	transferVersion = 1
	// maxTransferPart bounds a key or a value: lengths are lies until checked.
	maxTransferPart = 512 << 20
	// transferPairs and transferBytes bound one transaction of the file that is being received: bbolt keeps it in memory.
	transferPairs = 10_000
	transferBytes = 8 << 20
)

var errBusy = errors.New("consensus: another checkpoint is on its way here")

// received is a checkpoint of another member that is complete, checked, and ready to be installed.
type received struct {
	from, term  uint64 // the leader that sent it, and its term
	meta        checkpointMeta
	path        string // of the file; empty in memory
	install     func() // makes it the state of the state machine
	incarnation uint64 // of this server's stream from then on
}

// message is what raft is told.
func (r *received) message(to uint64) message {
	return message{to: to, from: r.from, raft: &raftpb.Message{
		Type: raftpb.MsgSnap.Enum(), To: &to, From: &r.from, Term: &r.term, Snapshot: snapshotOf(r.meta.Index, r.meta.Term, r.meta.Conf),
	}}
}

// writeTransfer writes a checkpoint as a stream.
func writeTransfer(w io.Writer, term uint64, meta checkpointMeta, pairs func(yield func(k, v []byte) error) error) error {
	b := bufio.NewWriterSize(w, 256<<10)
	head := binary.AppendUvarint([]byte{transferVersion}, term)
	encoded := meta.append(nil)
	head = append(binary.AppendUvarint(head, uint64(len(encoded))), encoded...)
	if _, err := b.Write(head); err != nil {
		return err
	}
	var n [2 * binary.MaxVarintLen64]byte
	err := pairs(func(k, v []byte) error {
		if v == nil { // a key that is not there
			return nil
		}
		lengths := binary.AppendUvarint(binary.AppendUvarint(n[:0], uint64(len(k))), uint64(len(v)))
		for _, part := range [...][]byte{lengths, k, v} {
			if _, err := b.Write(part); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := b.WriteByte(0); err != nil { // no key is empty
		return err
	}
	return b.Flush()
}

// readTransferHead reads what comes before the pairs.
func readTransferHead(r *bufio.Reader) (term uint64, meta checkpointMeta, err error) {
	version, err := r.ReadByte()
	if err == nil && version != transferVersion {
		err = fmt.Errorf("consensus: a checkpoint stream of version %d, this program knows %d", version, transferVersion)
	}
	if err != nil {
		return 0, meta, err
	}
	if term, err = binary.ReadUvarint(r); err != nil {
		return 0, meta, err
	}
	encoded, err := readPart(r, 1<<20)
	if err != nil {
		return 0, meta, err
	}
	meta, err = decodeMeta(encoded)
	return term, meta, err
}

// readPart reads a length and that many bytes.
func readPart(r *bufio.Reader, limit uint64) ([]byte, error) {
	n, err := binary.ReadUvarint(r)
	if err != nil {
		return nil, err
	}
	return readN(r, n, limit)
}

func readN(r *bufio.Reader, n, limit uint64) ([]byte, error) {
	if n > limit {
		return nil, fmt.Errorf("consensus: a checkpoint stream has a part of %d bytes, at most %d are allowed", n, limit)
	}
	if n <= 64<<10 {
		b := make([]byte, n)
		_, err := io.ReadFull(r, b)
		return b, err
	}
	b, err := io.ReadAll(io.LimitReader(r, int64(n)))
	if err == nil && uint64(len(b)) < n {
		err = io.ErrUnexpectedEOF
	}
	return b, err
}

// pairsOf goes through the pairs of a stream to its end. The first error ends it and is put into err.
func pairsOf(r *bufio.Reader, err *error) iter.Seq2[[]byte, []byte] {
	return func(yield func(k, v []byte) bool) {
		for {
			nk, e := binary.ReadUvarint(r)
			if e == nil && nk == 0 {
				if _, e = r.ReadByte(); errors.Is(e, io.EOF) {
					return
				}
				*err = errors.Join(errors.New("consensus: a checkpoint stream goes on behind its end"), e)
				return
			}
			var nv uint64
			if e == nil {
				nv, e = binary.ReadUvarint(r)
			}
			var k, v []byte
			if e == nil {
				k, e = readN(r, nk, maxTransferPart)
			}
			if e == nil {
				v, e = readN(r, nv, maxTransferPart)
			}
			if e != nil {
				if errors.Is(e, io.EOF) {
					e = io.ErrUnexpectedEOF
				}
				*err = e
				return
			}
			if !yield(k, v) {
				return
			}
		}
	}
}

// ReceiveCheckpoint takes a checkpoint that another member sends. It is written aside and checked while it comes; only when all
// of it is there does the loop hear of it.
func (n *Node) receiveCheckpoint(from uint64, stream io.Reader) error {
	if !n.receiving.CompareAndSwap(false, true) {
		return errBusy
	}
	err := n.receiveAll(from, stream)
	if err != nil {
		n.receiving.Store(false) // else the loop does it, when the checkpoint is installed or of no use
	}
	return err
}

func (n *Node) receiveAll(from uint64, stream io.Reader) error {
	r := bufio.NewReaderSize(stream, 256<<10)
	term, meta, err := readTransferHead(r)
	if err != nil {
		return err
	}
	got := &received{from: from, term: term, meta: meta}
	got.meta.Member = n.cfg.ID
	n.cfg.Logger.Info("receiving a checkpoint", "from", from, "index", meta.Index)
	if n.cfg.Dir != "" {
		got.path = n.cfg.checkpointPath() + fmt.Sprintf(".from-%d", from)
		err = n.receiveFile(got, r)
	} else {
		var streamErr error
		got.install, err = n.cfg.StateMachine.Restore(pairsOf(r, &streamErr))
		err = errors.Join(streamErr, err)
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
func (n *Node) receiveFile(got *received, r *bufio.Reader) (err error) {
	if err := removeIfThere(got.path); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, removeIfThere(got.path))
		}
	}()
	return checkpointFile{got.path}.use(func(db *bolt.DB) error {
		db.NoSync = true // synced once, below
		f := fileReceiver{db: db}
		var streamErr error
		got.install, err = n.cfg.StateMachine.Restore(f.through(pairsOf(r, &streamErr)))
		if err := errors.Join(streamErr, f.err, err); err != nil {
			return errors.Join(err, f.abandon())
		}
		if err := f.finish(got.meta); err != nil {
			return err
		}
		return db.Sync()
	})
}

// fileReceiver writes pairs to a file, some megabytes per transaction.
type fileReceiver struct {
	db       *bolt.DB
	room     func() error // asked before each transaction is written; nil: there is room
	tx       *bolt.Tx
	state    *bolt.Bucket
	n, bytes int // in the transaction
	err      error
}

// through writes every pair that it passes on.
func (f *fileReceiver) through(pairs iter.Seq2[[]byte, []byte]) iter.Seq2[[]byte, []byte] {
	return func(yield func(k, v []byte) bool) {
		for k, v := range pairs {
			if f.err = f.put(k, v); f.err != nil || !yield(k, v) {
				return
			}
		}
	}
}

func (f *fileReceiver) put(k, v []byte) (err error) {
	if f.tx == nil {
		if err := f.begin(); err != nil {
			return err
		}
	}
	if err := f.state.Put(k, v); err != nil {
		return err
	}
	f.n, f.bytes = f.n+1, f.bytes+len(k)+len(v)
	if f.n < transferPairs && f.bytes < transferBytes {
		return nil
	}
	return f.commit()
}

// commit writes what was put, if there is room.
func (f *fileReceiver) commit() (err error) {
	if f.room != nil {
		err = f.room()
	}
	if err != nil {
		return errors.Join(err, f.abandon())
	}
	err = f.tx.Commit()
	f.tx, f.n, f.bytes = nil, 0, 0
	return err
}

func (f *fileReceiver) begin() (err error) {
	if f.tx, err = f.db.Begin(true); err != nil {
		return err
	}
	f.state, err = f.tx.CreateBucketIfNotExists(stateBucket)
	if err == nil {
		f.state.FillPercent = 1 // keys come in order
	}
	return err
}

// finish writes what says that the file is whole.
func (f *fileReceiver) finish(meta checkpointMeta) error {
	if f.tx == nil {
		if err := f.begin(); err != nil {
			return err
		}
	}
	metas, err := f.tx.CreateBucketIfNotExists(metaBucket)
	if err == nil {
		err = metas.Put(metaKey, meta.append(nil))
	}
	if err != nil {
		return errors.Join(err, f.abandon())
	}
	return f.commit()
}

func (f *fileReceiver) abandon() error {
	if f.tx == nil {
		return nil
	}
	err := f.tx.Rollback()
	f.tx = nil
	return err
}

// removeReceived removes what a crash left of checkpoints that were on their way here.
func (n *Node) removeReceived() error {
	left, err := filepath.Glob(n.cfg.checkpointPath() + ".from-*")
	for _, path := range left {
		err = errors.Join(err, removeIfThere(path))
	}
	return err
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("consensus: checkpoint: %w", err)
	}
	return nil
}

// replace puts a complete checkpoint file in the place of this one.
func (c checkpointFile) replace(path string) error {
	if err := os.Rename(path, c.path); err != nil {
		return fmt.Errorf("consensus: checkpoint: %w", err)
	}
	if err := (vfs.OS{}).SyncDir(filepath.Dir(c.path)); err != nil {
		return fmt.Errorf("consensus: checkpoint: %w", err)
	}
	return nil
}

// stream writes the whole file as a checkpoint stream. A page that is damaged ends it with ErrCorruptCheckpoint.
func (c checkpointFile) stream(w io.Writer, term uint64) error {
	var sent error
	err := c.read(false, func(p *pages, buckets []bucket) error {
		meta, err := readMeta(p, buckets[0])
		if err != nil {
			return err
		}
		var damage error
		sent = writeTransfer(w, term, meta, func(yield func(k, v []byte) error) (err error) {
			damage = p.pairs(buckets[1], func(k, v []byte) error {
				if err = yield(k, v); err != nil {
					return errEnough
				}
				return nil
			})
			if err == nil {
				err = damage
			}
			return err
		})
		if errors.Is(damage, errEnough) {
			return nil
		}
		return damage
	})
	if err != nil {
		return err
	}
	return sent
}
