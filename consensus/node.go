package consensus

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/gozkd/gozkd/consensus/internal/checkpoint"
	"github.com/gozkd/gozkd/consensus/peer"
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
	memory      *Memory   // nil: gone with the node

	inbox *mailbox[input]
	toLog *mailbox[logWork]

	changed   chan struct{} // capacity 1: who leads is not as it was when it was last read
	leading   chan struct{} // closed when a leader is known and its first entry is applied
	gather    gather
	crowd     crowd // owned by Run
	status    atomic.Pointer[Status]
	logBytes  atomic.Int64
	cluster   atomic.Uint64
	clusters  clusters
	used      atomic.Bool  // Run or Close was called
	receiving atomic.Bool  // a checkpoint comes in, or waits, or is being installed: no other, it would have the same file
	broken    atomic.Int64 // checkpoints that did not arrive

	// Owned by Run.
	toPersist      []logWork // a commit index that nobody waits for, until the next append
	cadence        cadence
	checkpointing  bool
	lastCheckpoint uint64          // index of the one on disk
	out            outgoing        // checkpoints for others
	life           context.Context // of Run
	arrived        *received       // waits for a checkpoint that is being written
	prepared       *received       // given to raft, which may ask for it
	installing     bool
	background     sync.WaitGroup
	handOver       chan struct{} // closed when another leads, or nobody else can; nil: not stopping
	handOverTicks  int
	publishedConf  *raftpb.ConfState
	persistedConf  *raftpb.ConfState // that it is committed was given to the log
	peers          []PeerStatus      // as of the last tick, while leading
	ticks          uint64
	heard          map[uint64]uint64 // member: the tick at which it was last active, while leading
	publishedTerm  uint64
	reign          reignOf           // the last that was published
	strangers      map[uint64]uint64 // member without state that was spoken of in the log: its nonce
	counted        Counts
	reigns         reigns
	stages         stages
	inStep         map[uint64]bool // other members, while leading

	unsent    []uint64      // members that flushMessages has something for
	network   *peer.Network // nil: alone. Made by Run
	networkMu sync.Mutex    // guards network against SetMembers and Send, and addresses
	addresses map[uint64]string
}

// input is what reaches the loop from other goroutines: one of the fields is set.
type input struct {
	payload       []byte
	ref           any
	read          func()
	persisted     []*raftpb.Message
	at            time.Time // of persisted: when it was
	installed     *received
	message       *message
	checkpoint    uint64 // is written: its index
	took          time.Duration
	received      *received
	transferEnded uint64
	ok            bool // of transferEnded, connected
	connected     uint64
	disconnected  uint64
	gone          bool // of disconnected
	target        *Target
	peers         []uint64
	handOver      chan struct{}
	err           error // of the disk
}

// Open restores the state machine from the data directory and opens the log. The node is passive until Run. On an error
// nothing stays open. A data directory that another process uses is refused.
func Open(cfg Config) (_ *Node, err error) {
	if err := cfg.ensureDefaults(); err != nil {
		if cfg.PeerListener != nil {
			err = errors.Join(err, cfg.PeerListener.Close())
		}
		return nil, err
	}
	n := &Node{
		cfg: cfg, storage: raft.NewMemoryStorage(),
		inbox: newMailbox[input](), toLog: newMailbox[logWork](),
		leading: make(chan struct{}), changed: make(chan struct{}, 1),
	}
	n.gather.init(n.inbox.signal)
	n.status.Store(&Status{})
	defer func() {
		if err != nil {
			err = errors.Join(err, n.release())
		}
	}()
	r := recovered{meta: checkpointMeta{Member: cfg.ID, Streams: streams{}}}
	if cfg.Dir != "" {
		if err := n.recover(&r); err != nil {
			return nil, err
		}
	}
	if cfg.Dir == "" {
		if cfg.Memory != nil {
			if err := cfg.Memory.take(n, &r); err != nil {
				return nil, err
			}
			n.memory = cfg.Memory
		}
		r.nextIncarnation(n.firstIncarnation(), n.random())
	}
	if err := r.fill(n.storage); err != nil {
		return nil, err
	}
	n.writer = &logWriter{
		log: n.log, storage: n.storage, checkpoints: n.checkpoints, size: &n.logBytes, state: r.state, written: r.state,
		done: func(responses []*raftpb.Message, installed *received) {
			n.inbox.put(input{persisted: responses, installed: installed, at: n.cfg.Now()})
		},
	}
	n.core, err = newCore(coreConfig{
		id: cfg.ID, incarnation: r.state.Incarnation, storage: n.storage, state: r.meta,
		voters: cfg.Voters, learners: cfg.Learners, nonce: n.random() | 1, graceTicks: cfg.FormTicks, tail: defaultTailLimits(), random: n.random,
		logger: raftLogger{cfg.Logger.Named("raft")},
	})
	if err != nil {
		return nil, err
	}
	n.lastCheckpoint, n.persistedConf = r.meta.Index, n.core.conf
	n.cluster.Store(n.core.cluster)
	// Members don't write their checkpoints all at the same moment.
	if len(cfg.Voters) != 1 {
		n.cadence.requests = int(cfg.ID%8) * cfg.CheckpointRequests / 8
		n.cadence.bytes = int64(cfg.ID%8) * cfg.CheckpointBytes / 8
	}
	return n, nil
}

// firstIncarnation is more than an earlier life without a trace here can have had.
func (n *Node) firstIncarnation() uint64 { return uint64(n.cfg.Now().UnixMilli())<<20 | n.random()>>44 }

// random returns a number that nobody guesses.
func (n *Node) random() uint64 {
	var b [8]byte
	if _, err := io.ReadFull(n.cfg.Rand, b[:]); err != nil {
		panic(fmt.Sprintf("consensus: random numbers: %v", err)) // crypto/rand does not fail
	}
	return binary.BigEndian.Uint64(b[:])
}

// Propose puts a request at the end of this server's stream; it returns at once. When the request is applied, ref is
// handed to the state machine with it. A node that stops first never hands it over: whether the request takes effect is
// then unknown, it may be in the log. The payload belongs to the node and is not nil.
func (n *Node) Propose(payload []byte, ref any) { n.request(input{payload: payload, ref: ref}) }

// request gives the loop a request. It is not woken at once while requests gather.
func (n *Node) request(in input) {
	n.inbox.add(in)
	if !n.gather.waits() {
		n.inbox.signal()
	}
}

// Read calls f, on the loop's goroutine between two batches, when all is applied here that was committed anywhere at the
// time of the call. A node that stops first never calls it.
func (n *Node) Read(f func()) { n.inbox.put(input{read: f}) }

// Ready is closed when the node knows a leader and has applied its first entry.
func (n *Node) Ready() <-chan struct{} { return n.leading }

// LogBytes returns the size of the log on disk.
func (n *Node) LogBytes() int64 { return n.logBytes.Load() }

// Run runs the node until ctx ends, which gives ErrClosed, or until its disk fails, which gives that error. It closes the
// log and releases the data directory before it returns. Call it once.
func (n *Node) Run(ctx context.Context) error {
	if n.used.Swap(true) {
		return errors.New("consensus: Run called twice, or after Close")
	}
	n.life = ctx
	n.out.begin(ctx)
	defer func() { n.out.cancel() }()
	if err := n.connect(); err != nil {
		return errors.Join(err, n.release())
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
	n.out.cancel()
	err = errors.Join(err, n.disconnect())
	close(stopLog)
	logDone.Wait()
	n.background.Wait()
	for _, in := range n.inbox.take() {
		switch {
		case in.err != nil && errors.Is(err, ErrClosed):
			err = in.err // the disk failed while the loop was ending
		case in.installed != nil && n.memory != nil: // the log is of that state already
			err = errors.Join(err, n.persisted(input{installed: in.installed}))
		}
	}
	if n.memory != nil {
		n.memory.leave(n)
		n.memory = nil
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
	if n.network == nil && n.cfg.PeerListener != nil {
		err = n.cfg.PeerListener.Close()
	}
	if n.log != nil {
		err = errors.Join(err, n.log.Close())
	}
	if n.lock != nil {
		err = errors.Join(err, n.lock.Close())
	}
	if n.memory != nil {
		n.memory.giveBack()
	}
	return err
}

func (n *Node) loop(ctx context.Context) error {
	ticker := time.NewTicker(n.cfg.Tick)
	defer ticker.Stop()
	defer n.gather.end()
	for {
		if err := n.work(); err != nil {
			return err
		}
		n.gather.turn(n.core.gathering())
		if !n.inbox.empty() { // it may have come without a signal
			n.inbox.signal()
		}
		select {
		case <-n.inbox.wake:
			if n.crowd.expected() {
				runtime.Gosched()
			}
		case <-ticker.C:
			n.lookAtPeers()
			n.core.tick()
			n.tickHandOver()
			n.tickTransfers()
			n.maybeCheckpoint() // one that was put off
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
	inputs := n.inbox.take()
	n.crowd.came(len(inputs))
	for _, in := range inputs {
		switch {
		case in.payload != nil:
			n.core.propose(in.payload, in.ref)
		case in.read != nil:
			n.core.read(in.read)
		case in.message != nil && n.clusters.foreign(in.message.from, n.core.cluster):
		case in.message != nil:
			n.tellOfJoin(in.message)
			if err := n.core.step(*in.message); err != nil {
				return err
			}
		case in.err != nil:
			return in.err
		case in.checkpoint != 0:
			n.cadence.written(time.Now(), in.took)
			if err := n.checkpointWritten(in.checkpoint); err != nil {
				return err
			}
		case in.received != nil:
			n.arrived = in.received
		case in.transferEnded != 0:
			if err := n.transferEnded(in.transferEnded, in.ok); err != nil {
				return err
			}
		case in.connected != 0:
			n.core.reachable(in.connected)
		case in.disconnected != 0:
			n.core.unreachable(in.disconnected, in.gone)
		case in.target != nil:
			n.core.setTarget(*in.target)
		case in.peers != nil:
			n.core.setPeers(in.peers)
		case in.handOver != nil:
			n.handOver = in.handOver
			n.tickHandOver()
		}
		if err := n.persisted(in); err != nil {
			return err
		}
	}
	return n.offerReceived()
}

// persisted passes on the responses of what is on disk now.
func (n *Node) persisted(in input) error {
	if in.installed != nil {
		n.installing = false
		n.lastCheckpoint = in.installed.meta.Index
		n.cadence.begun()
		lost := n.core.installed(in.installed.meta, in.installed.incarnation)
		in.installed.install()
		n.receiving.Store(false)
		for _, ref := range lost {
			n.cfg.OnLost(ref)
		}
		n.cfg.Logger.Info("installed a checkpoint", "from", in.installed.from, "index", in.installed.meta.Index)
	}
	for _, m := range in.persisted {
		if m.GetTo() != n.cfg.ID {
			n.send(message{to: m.GetTo(), from: n.cfg.ID, raft: m})
			continue
		}
		n.stages.written(m, in.at)
		if err := n.core.persisted(m); err != nil {
			return err
		}
	}
	return nil
}

// offerReceived tells raft of a checkpoint that has come, when no checkpoint of our own is being written to the same file.
func (n *Node) offerReceived() error {
	r := n.arrived
	if r == nil || n.checkpointing || n.installing {
		return nil
	}
	n.arrived, n.prepared = nil, r
	if !apart(r.meta.Cluster, n.core.cluster) {
		if err := n.core.step(r.message(n.cfg.ID)); err != nil {
			return err
		}
	}
	if err := n.work(); err != nil {
		return err
	}
	if n.prepared != nil { // there is no use for it: it is too old, or of an old leader, or of another ensemble
		n.prepared = nil
		defer n.receiving.Store(false)
		if r.path != "" {
			return checkpoint.Remove(r.path)
		}
	}
	return nil
}

// work does what the core wants until it wants nothing more. Messages go out and the log is given its work before batches are applied, so that
// network, disk and processor are busy at the same time. What must not leave before a write is not among the messages but among its responses.
func (n *Node) work() error {
	for {
		now := n.cfg.Now()
		out, err := n.core.ready(now.UnixMilli())
		if err != nil {
			return err
		}
		n.stages.sent(&out, n.core, now)
		for _, m := range out.messages {
			n.send(m)
		}
		n.flushMessages()
		if out.empty() {
			n.publish()
			return nil
		}
		alone := n.cfg.PeerListener == nil && len(out.batches) == 0 && n.inbox.empty()
		if err := n.persist(out.appends, alone); err != nil {
			return err
		}
		if len(out.batches) > 0 {
			n.stages.stamp(&out)
			n.cfg.StateMachine.Apply(out.batches)
			for i := range out.batches {
				n.cadence.note(&out.batches[i])
			}
		}
		for _, read := range out.reads {
			read()
		}
		if out.form {
			if err := n.form(); err != nil {
				return err
			}
		}
		for _, s := range out.steered {
			n.cfg.OnSteered(s)
		}
		if err := n.sendCheckpoints(out.checkpointsFor); err != nil {
			return err
		}
		n.maybeCheckpoint()
	}
}

// form writes what a new ensemble begins with: who this member is and who votes.
func (n *Node) form() error {
	meta := n.core.firstMeta()
	if n.log != nil {
		n.writer.mu.Lock()
		err := n.writer.begin(n.core.firstState())
		n.writer.mu.Unlock()
		if err == nil {
			err = n.checkpoints.write(n.lastCheckpoint, meta, n.cfg.StateMachine.Capture())
		}
		if err != nil {
			return err
		}
	}
	n.lastCheckpoint = meta.Index
	if len(meta.Conf.GetVoters()) > 1 {
		n.cfg.Logger.Info("forming a new ensemble", "voters", meta.Conf.GetVoters())
	}
	return n.core.formed()
}

func (n *Node) publish() {
	c := n.core
	s := Status{
		Leader: c.leader, Leading: c.role == raft.StateLeader, Term: c.term, Applied: c.applied,
		Current: c.current(), Fresh: c.start.fresh, Voter: slices.Contains(c.conf.GetVoters(), c.id),
		Joining: c.role == raft.StateLeader && len(c.member.joins) > 0,
	}
	old := n.status.Load()
	s.Since, s.Voters, s.Learners = old.Since, old.Voters, old.Learners
	if c.conf != n.publishedConf {
		n.publishedConf = c.conf
		s.Voters, s.Learners = slices.Clone(c.conf.GetVoters()), slices.Clone(c.conf.GetLearners())
	}
	if old.Leader != s.Leader || old.Leading != s.Leading {
		s.Since = time.Now() // for how long is the question, so the clock that does not jump
	}
	n.tell(old, &s)
	if n.cfg.PeerListener != nil && (old.Leader != s.Leader || old.Current != s.Current || old.Applied == 0) {
		reign, begun, leaders := n.reigns.look(old, &s, time.Now())
		n.counted.Leaders += leaders
		if begun && n.cfg.OnReign != nil {
			n.cfg.OnReign(reign)
		}
	}
	s.Counts = n.counted
	s.Counts.Proposed, s.Counts.Resent = c.proposed, c.own.resent
	if s.Leading {
		s.Peers = n.peers
	}
	n.status.Store(&s)
	if old.Leader != s.Leader || old.Leading != s.Leading || old.Current != s.Current {
		select {
		case n.changed <- struct{}{}:
		default:
		}
	}
	if c.cluster != n.cluster.Load() {
		n.belongTo(c.cluster)
	}
	if c.current() {
		select {
		case <-n.leading:
		default:
			close(n.leading)
		}
	}
}

// maybeCheckpoint starts a checkpoint if enough was applied since the last and none is being written or sent.
func (n *Node) maybeCheckpoint() {
	if n.log != nil && len(n.out.active) == 0 && !n.installing && n.prepared == nil && !n.core.start.fresh &&
		n.cadence.due(time.Now(), n.cfg.CheckpointRequests, n.cfg.CheckpointBytes) {
		n.checkpoint()
	}
}

// checkpoint writes a checkpoint, unless one is being written. One that can't be written stops the node: what it should have
// held is in the log still, so nothing is lost, but the log would grow without bound.
func (n *Node) checkpoint() {
	if n.checkpointing {
		return
	}
	n.checkpointing = true
	n.cadence.begun()
	base, meta, changes := n.lastCheckpoint, n.core.meta(), n.cfg.StateMachine.Capture()
	for _, to := range n.out.wanted {
		n.core.transferStarted(to, meta.Index) // the log behind it is kept
	}
	n.background.Add(1)
	// Ends by itself when the checkpoint is written; Run waits for it.
	go func() {
		defer n.background.Done()
		start := time.Now()
		if err := n.checkpoints.write(base, meta, changes); err != nil {
			n.inbox.put(input{err: err})
			return
		}
		took := time.Since(start)
		if n.cfg.OnCheckpoint != nil {
			n.cfg.OnCheckpoint(took, changes.Len())
		}
		n.inbox.put(input{checkpoint: meta.Index, took: took})
	}()
}

// checkpointWritten drops the log that the checkpoint covers, but for what is kept in memory for others too.
func (n *Node) checkpointWritten(index uint64) error {
	n.checkpointing = false
	n.lastCheckpoint = index
	n.cfg.Logger.Debug("checkpoint written", "index", index)
	first, err := n.storage.FirstIndex()
	if err != nil {
		return err
	}
	if n.cfg.PeerListener != nil {
		index = min(index, first-1)
	}
	n.toLog.put(logWork{compact: index})
	return n.sendCheckpoints(nil)
}
