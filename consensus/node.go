package consensus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/gozkd/gozkd/internal/vfs"
	"github.com/gozkd/gozkd/wal"
)

// ErrClosed is wrapped by the error of Run when its context has ended.
var ErrClosed = errors.New("consensus: closed")

// Node is one member: the shell around the core. Open makes one, Run runs it.
type Node struct {
	cfg         Config
	core        *core
	storage     *raft.MemoryStorage
	log         *wal.Log // nil in memory; belongs to writer while Run runs
	writer      *logWriter
	checkpoints checkpointFile
	lock        io.Closer // of the data directory

	inbox *mailbox[input]
	toLog *mailbox[logWork]

	leading  chan struct{} // closed when a leader is known and its first entry is applied
	status   atomic.Pointer[Status]
	logBytes atomic.Int64
	used     atomic.Bool // Run or Close was called

	// Owned by Run.
	toPersist     []logWork // a commit index that nobody waits for, until the next append
	state         logState  // as Open left it in the log
	sinceRequests int       // applied since the last capture
	sinceBytes    int64
	checkpointing bool
	background    sync.WaitGroup
}

// Status is a view of the node at one moment.
type Status struct {
	Leader  uint64 // 0: none is known
	Leading bool
	Term    uint64
	Applied uint64 // index of the last applied entry
}

// input is what reaches the loop from other goroutines: one of the fields is set.
type input struct {
	payload    []byte
	ref        any
	read       func()
	persisted  []*raftpb.Message
	checkpoint uint64 // is written: its index
	err        error  // of the disk
}

// logWork is work for the log goroutine.
type logWork struct {
	append  *raftpb.Message
	compact uint64
}

// Open restores the state machine from the data directory and opens the log. The node is passive until Run. On an error
// nothing stays open. A data directory that another process uses is refused.
func Open(cfg Config) (_ *Node, err error) {
	if err := cfg.ensureDefaults(); err != nil {
		return nil, err
	}
	n := &Node{
		cfg: cfg, storage: raft.NewMemoryStorage(),
		inbox: newMailbox[input](), toLog: newMailbox[logWork](),
		leading: make(chan struct{}),
	}
	n.status.Store(&Status{})
	defer func() {
		if err != nil {
			err = errors.Join(err, n.release())
		}
	}()
	meta := checkpointMeta{Member: cfg.ID, Index: 1, Term: 1, Conf: &raftpb.ConfState{Voters: []uint64{cfg.ID}}, Streams: streams{}}
	var entries []*raftpb.Entry
	if cfg.Dir != "" {
		if meta, entries, err = n.recover(meta); err != nil {
			return nil, err
		}
	} else {
		n.state = logState{Term: meta.Term, Commit: meta.Index, Incarnation: 1}
	}
	if err := n.fillStorage(meta, entries); err != nil {
		return nil, err
	}
	n.writer = &logWriter{n: n, state: n.state, written: n.state}
	n.core, err = newCore(coreConfig{
		id: cfg.ID, incarnation: n.state.Incarnation, storage: n.storage, state: meta,
		logger: raftLogger{cfg.Logger.Named("raft")},
	})
	return n, err
}

// recover reads checkpoint and log. first is the meta of a new member.
func (n *Node) recover(first checkpointMeta) (checkpointMeta, []*raftpb.Entry, error) {
	cfg := &n.cfg
	if err := (vfs.OS{}).MkdirAll(cfg.Dir); err != nil {
		return first, nil, fmt.Errorf("consensus: data directory: %w", err)
	}
	lock, err := (vfs.OS{}).Lock(filepath.Join(cfg.Dir, "LOCK"))
	if err != nil {
		return first, nil, fmt.Errorf("consensus: data directory %s: %w", cfg.Dir, err)
	}
	n.lock = lock
	n.checkpoints = checkpointFile{cfg.checkpointPath()}
	meta, found, err := n.checkpoints.load(cfg.StateMachine.Restore)
	if err != nil {
		return first, nil, err
	}
	log, rec, err := wal.Open(cfg.walDir(), wal.Config{
		FS: cfg.FS, SegmentBytes: cfg.SegmentBytes, NoSync: cfg.NoSync, Logger: cfg.Logger.Named("wal"), OnSync: cfg.OnSync,
	})
	if err != nil {
		return first, nil, err
	}
	n.log = log
	n.logBytes.Store(log.Size())
	state, err := decodeLogState(rec.State)
	if err != nil {
		return first, nil, err
	}
	// A new member gets its log, then its checkpoint, then entries. So one without the other is a loss.
	switch {
	case found && rec.State == nil:
		return first, nil, fmt.Errorf("consensus: the checkpoint %s is there, but the log in %s is missing: restore it from a copy",
			cfg.checkpointPath(), cfg.walDir())
	case !found && (len(rec.Entries) > 0 || state.Commit > first.Index):
		return first, nil, fmt.Errorf("consensus: the log in %s has entries, but the checkpoint %s is missing: restore it from a copy",
			cfg.walDir(), cfg.checkpointPath())
	case !found:
		meta = first
	}
	if meta.Member != cfg.ID {
		return first, nil, fmt.Errorf("consensus: data directory %s belongs to member %d, this is member %d", cfg.Dir, meta.Member, cfg.ID)
	}
	entries, err := n.joinLog(meta, rec.Entries)
	if err != nil {
		return first, nil, err
	}
	last := meta.Index + uint64(len(entries))
	if state.Commit > last {
		return first, nil, fmt.Errorf("%w: the log in %s ends at entry %d, but entry %d was committed: restore the data directory from a copy",
			wal.ErrCorrupt, cfg.walDir(), last, state.Commit)
	}
	state.Term, state.Commit = max(state.Term, meta.Term), max(state.Commit, meta.Index)
	// A new incarnation, on disk before the first request of it can leave (C2).
	state.Incarnation = max(state.Incarnation, meta.Streams[cfg.ID].incarnation) + 1
	b := wal.Batch{State: state.append(nil)}
	if log.LastIndex() < meta.Index {
		b.Reset = meta.Index
	}
	if err := log.Append(b); err != nil {
		return first, nil, err
	}
	n.state = state
	if !found {
		// The first checkpoint is the member's identity: who it is and who votes.
		if err := n.checkpoints.write(first, cfg.StateMachine.Capture()); err != nil {
			return first, nil, err
		}
	}
	return meta, entries, nil
}

// joinLog returns the log's entries behind the checkpoint.
func (n *Node) joinLog(meta checkpointMeta, logged []wal.Entry) ([]*raftpb.Entry, error) {
	var entries []*raftpb.Entry
	for _, e := range logged {
		if e.Index <= meta.Index {
			continue
		}
		if want := meta.Index + uint64(len(entries)) + 1; e.Index != want {
			return nil, fmt.Errorf("%w: the checkpoint ends at entry %d, but the log in %s goes on with entry %d: restore the data directory from a copy",
				wal.ErrCorrupt, want-1, n.cfg.walDir(), e.Index)
		}
		entry, err := decodeEntry(e.Index, e.Data)
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry)
	}
	return entries, nil
}

func (n *Node) fillStorage(meta checkpointMeta, entries []*raftpb.Entry) error {
	snap := &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{ConfState: meta.Conf, Index: &meta.Index, Term: &meta.Term}}
	return errors.Join(n.storage.ApplySnapshot(snap), n.storage.SetHardState(n.state.hardState()), n.storage.Append(entries))
}

// Propose puts a request at the end of this server's stream; it returns at once. When the request is applied, ref is
// handed to the state machine with it. A node that stops first never hands it over: whether the request takes effect is
// then unknown, it may be in the log. The payload belongs to the node and is not nil.
func (n *Node) Propose(payload []byte, ref any) { n.inbox.put(input{payload: payload, ref: ref}) }

// Read calls f, on the loop's goroutine between two batches, when all is applied here that was committed anywhere at the
// time of the call. A node that stops first never calls it.
func (n *Node) Read(f func()) { n.inbox.put(input{read: f}) }

// Ready is closed when the node knows a leader and has applied its first entry.
func (n *Node) Ready() <-chan struct{} { return n.leading }

// Status returns a recent view.
func (n *Node) Status() Status { return *n.status.Load() }

// LogBytes returns the size of the log on disk.
func (n *Node) LogBytes() int64 { return n.logBytes.Load() }

// Run runs the node until ctx ends, which gives ErrClosed, or until its disk fails, which gives that error. It closes the
// log and releases the data directory before it returns. Call it once.
func (n *Node) Run(ctx context.Context) error {
	if n.used.Swap(true) {
		return errors.New("consensus: Run called twice, or after Close")
	}
	stopLog := make(chan struct{})
	var logDone sync.WaitGroup
	if n.log != nil {
		logDone.Add(1)
		// Stopped by stopLog and awaited below.
		go func() {
			defer logDone.Done()
			n.runLog(stopLog)
		}()
	}
	err := n.loop(ctx)
	close(stopLog)
	logDone.Wait()
	n.background.Wait()
	for _, in := range n.inbox.take() {
		if in.err != nil && errors.Is(err, ErrClosed) {
			err = in.err // the disk failed while the loop was ending
		}
	}
	return errors.Join(err, n.release())
}

// Close releases what Open took, if Run was never called. After Run it does nothing.
func (n *Node) Close() error {
	if n.used.Swap(true) {
		return nil
	}
	return n.release()
}

func (n *Node) release() (err error) {
	if n.log != nil {
		err = n.log.Close()
	}
	if n.lock != nil {
		err = errors.Join(err, n.lock.Close())
	}
	return err
}

func (n *Node) loop(ctx context.Context) error {
	ticker := time.NewTicker(n.cfg.Tick)
	defer ticker.Stop()
	if err := n.core.start(); err != nil {
		return err
	}
	for {
		if err := n.work(); err != nil {
			return err
		}
		select {
		case <-n.inbox.wake:
		case <-ticker.C:
			n.core.tick()
		case <-ctx.Done():
			return ErrClosed
		}
		if err := n.receive(); err != nil {
			return err
		}
	}
}

// receive feeds the core with what others sent.
func (n *Node) receive() error {
	for _, in := range n.inbox.take() {
		switch {
		case in.payload != nil:
			n.core.propose(in.payload, in.ref)
		case in.read != nil:
			n.core.read(in.read)
		case in.err != nil:
			return in.err
		case in.checkpoint != 0:
			n.checkpointWritten(in.checkpoint)
		}
		for _, m := range in.persisted {
			if err := n.core.step(m); err != nil {
				return err
			}
		}
	}
	return nil
}

// work does what the core wants until it wants nothing more. The log is given its work before batches are applied, so
// that disk and processor are busy at the same time.
func (n *Node) work() error {
	for {
		out, err := n.core.ready(n.cfg.Now().UnixMilli())
		if err != nil {
			return err
		}
		if out.empty() {
			n.publish()
			return nil
		}
		alone := len(out.batches) == 0 && len(out.messages) == 0 && n.inbox.empty()
		if err := n.persist(out.appends, alone); err != nil {
			return err
		}
		if len(out.batches) > 0 {
			n.cfg.StateMachine.Apply(out.batches)
			for i := range out.batches {
				n.sinceRequests += len(out.batches[i].Requests)
				for _, r := range out.batches[i].Requests {
					n.sinceBytes += int64(len(r.Payload))
				}
			}
		}
		for _, read := range out.reads {
			read()
		}
		n.maybeCheckpoint()
	}
}

func (n *Node) publish() {
	s := Status{Leader: n.core.leader, Leading: n.core.role == raft.StateLeader, Term: n.core.term, Applied: n.core.applied}
	old := n.status.Load()
	if *old == s {
		return
	}
	if old.Leader != s.Leader || old.Leading != s.Leading {
		n.cfg.Logger.Info("leader changed", "leader", s.Leader, "leading", s.Leading, "term", s.Term)
	}
	n.status.Store(&s)
	if n.core.current() {
		select {
		case <-n.leading:
		default:
			close(n.leading)
		}
	}
}

// maybeCheckpoint starts a checkpoint if enough was applied since the last and none is being written. One that can't be
// written stops the node: what it should have held is in the log still, so nothing is lost, but the log would grow
// without bound.
func (n *Node) maybeCheckpoint() {
	if n.log == nil || n.checkpointing ||
		(n.sinceRequests < n.cfg.CheckpointRequests && n.sinceBytes < n.cfg.CheckpointBytes) {
		return
	}
	n.checkpointing, n.sinceRequests, n.sinceBytes = true, 0, 0
	meta, changes := n.core.meta(), n.cfg.StateMachine.Capture()
	n.background.Add(1)
	// Ends by itself when the checkpoint is written; Run waits for it.
	go func() {
		defer n.background.Done()
		start := time.Now()
		if err := n.checkpoints.write(meta, changes); err != nil {
			n.inbox.put(input{err: err})
			return
		}
		if n.cfg.OnCheckpoint != nil {
			n.cfg.OnCheckpoint(time.Since(start), changes.Len())
		}
		n.inbox.put(input{checkpoint: meta.Index})
	}()
}

// checkpointWritten drops the log that the checkpoint covers.
func (n *Node) checkpointWritten(index uint64) {
	n.checkpointing = false
	n.cfg.Logger.Debug("checkpoint written", "index", index)
	n.toLog.put(logWork{compact: index})
}
