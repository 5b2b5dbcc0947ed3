package consensus

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/gozkd/gozkd/consensus/internal/core"
	"github.com/gozkd/gozkd/consensus/internal/turn"
	"github.com/gozkd/gozkd/internal/vfs"
	"github.com/gozkd/gozkd/wal"
)

// ErrClosed is wrapped by the error of Run when its context has ended.
var ErrClosed = errors.New("consensus: closed")

// Node is a member of an ensemble. Open makes a Node, Run runs it. Each part of a Node says which
// goroutines use it.
type Node struct {
	cfg         *Config    // as completed by Open; never changes
	core        *core.Core // guarded by turns
	loop        *turn.Loop // guarded by turns
	inbox       *inbox
	wakeups     *wakeups
	turns       turns
	log         logThread
	checkpoints *checkpoints
	network     *peerNetwork
	status      statusBoard
	peers       peerActivity // guarded by turns
	following   *followed    // guarded by turns; nil: no entries of Follow wait to be applied

	reverted  bool        // see Status.Reverted
	lock      vfs.Lock    // of the data directory; nil: in memory
	memory    *Memory     // nil: the state is lost with the node
	used      atomic.Bool // Run or Close was called
	loopEnded chan struct{}
}

// Open restores the state machine from the data directory and opens the log. The node does nothing
// until Run. After an error nothing stays open. One that another process uses is refused.
func Open(cfg Config) (_ *Node, err error) {
	if err := cfg.ensureDefaults(); err != nil {
		if cfg.PeerListener != nil {
			err = errors.Join(err, cfg.PeerListener.Close())
		}
		return nil, err
	}
	n := &Node{
		cfg: &cfg, inbox: newInbox(), peers: peerActivity{inStep: make(map[uint64]bool)}, loopEnded: make(chan struct{}),
	}
	n.wakeups = newWakeups(n.inbox)
	n.turns.taken = make(chan struct{}, 1)
	n.turns.taken <- struct{}{} // until Run begins
	n.checkpoints = &checkpoints{cfg: n.cfg, inbox: n.inbox}
	n.network = &peerNetwork{
		cfg: n.cfg, inbox: n.inbox, wakeups: n.wakeups, drive: n.drive, checkpoints: n.checkpoints,
		hellos: make(map[uint64]hello),
	}
	n.status.init()
	n.log.queue = newMailbox[turn.LogWork](make(chan struct{}, 1))
	n.log.watch = &writeWatch{limit: core.ElectionTicks * cfg.Tick, logger: cfg.Logger}
	n.log.writer = &logWriter{
		storage: raft.NewMemoryStorage(), watch: n.log.watch,
		most: int(min(maxAppendBytes, cfg.MemoryBytes/64, cmp.Or(cfg.SegmentBytes, wal.DefaultSegmentBytes)/2)),
		done: func(responses []*raftpb.Message, installed *turn.Received) {
			n.inbox.logResults.add(logResult{responses, installed, n.cfg.Now()})
		},
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.release())
		}
	}()
	r := recovered{meta: core.Meta{Member: cfg.ID, Streams: core.Streams{}}}
	if !n.cfg.inMemory() {
		n.waitForDescriptors()
		if err := n.recover(&r); err != nil {
			return nil, err
		}
	} else {
		if cfg.Memory != nil {
			if err := cfg.Memory.take(n, &r); err != nil {
				return nil, err
			}
			n.memory = cfg.Memory
		}
		r.nextIncarnation(n.clockIncarnation(), n.random())
	}
	w := n.log.writer
	if err := r.fill(w.storage); err != nil {
		return nil, err
	}
	w.checkpoints, w.state, w.written = n.checkpoints.file, r.state, r.state
	n.status.recovered = r.level
	retention := core.DefaultRetention(cfg.MemoryBytes)
	retention.ArchiveBytes = cfg.ArchiveBytes
	n.core, err = core.New(core.Config{
		ID: cfg.ID, Incarnation: r.state.Incarnation, Past: r.past, Outdated: r.state.Outdated, Storage: w.storage, Meta: r.meta,
		Voters: cfg.Voters, Learners: cfg.Learners, Nonce: n.random() | 1, GraceTicks: cfg.FormTicks,
		Levels: cfg.Levels, LevelLimit: cfg.MaxLevel, Relayed: cfg.Relayed,
		Retention: retention, Validate: cfg.Validate, Random: n.random, Logger: raftLogger{cfg.Logger.Named("raft")},
	})
	if err != nil {
		return nil, err
	}
	n.network.cluster.Store(n.core.Cluster())
	n.network.setIncarnations(n.core)
	n.network.levels.Store(new(n.core.Levels.Info()))
	n.network.own.Store(&cfg.PeerAddress)
	n.loop = turn.New(turn.Config{
		Core: n.core, Host: loopHost{n}, Durable: !n.cfg.inMemory(), HasPeers: cfg.PeerListener != nil, LastCheckpoint: r.meta.Index,
		CheckpointRequests: cfg.CheckpointRequests, CheckpointBytes: cfg.CheckpointBytes,
	})
	return n, nil
}

// waitForDescriptors makes the disk wait for file descriptors if none is left for a while.
func (n *Node) waitForDescriptors() {
	warn := func(err error) {
		n.cfg.Logger.Warn("the disk waits, because no file descriptor is left: raise the limit of this process (ulimit -n), or lower maxCnxns",
			"error", err)
	}
	n.cfg.FS, n.cfg.DirFS = vfs.Patient(n.cfg.FS, warn), vfs.Patient(n.cfg.DirFS, warn)
}

// clockIncarnation returns an incarnation above any that an earlier life can have had, unless the
// clock was ahead then.
func (n *Node) clockIncarnation() uint64 { return uint64(n.cfg.Now().UnixMilli())<<20 | n.random()>>44 }

func (n *Node) random() uint64 {
	var b [8]byte
	if _, err := io.ReadFull(n.cfg.Rand, b[:]); err != nil {
		panic(fmt.Sprintf("consensus: random numbers: %v", err)) // crypto/rand does not fail
	}
	return binary.BigEndian.Uint64(b[:])
}

// Propose appends a request to this server's stream and returns at once. When the request is
// applied, the state machine gets ref with the request, or Config.OnLost gets ref if the request
// comes as part of another member's checkpoint. A node that stops earlier never hands ref over; the
// request may be in the log, so whether it takes effect is then unknown. The payload must
// not be nil, nor change before ref is handed over.
func (n *Node) Propose(payload []byte, ref any) {
	n.Enqueue(payload, ref)
	if !n.wakeups.proposals.delays() {
		n.inbox.signal()
	}
}

// Enqueue is Propose, but the request waits until Drive is called.
func (n *Node) Enqueue(payload []byte, ref any) { n.inbox.requests.add(request{payload, ref}) }

// Read calls f, on the loop's goroutine between two batches, when everything is applied here that
// was committed anywhere at the time of the call. A node that stops earlier never calls f.
func (n *Node) Read(f func()) { n.inbox.events.put(coreCall(func(c *core.Core) { c.Read(f) })) }

// Run runs the node until ctx ends, and then returns ErrClosed, or until its disk fails, and then
// returns that error. Before Run returns, it closes the log and releases the data directory. Run
// must be called at most once.
func (n *Node) Run(ctx context.Context) error {
	if n.used.Swap(true) {
		return errors.New("consensus: Run called twice, or after Close")
	}
	life, end := context.WithCancel(ctx)
	defer end()
	n.checkpoints.begin(life)
	if n.cfg.PeerListener != nil {
		if err := n.network.connect(); err != nil {
			return errors.Join(err, n.release())
		}
	}
	stopLog := make(chan struct{})
	var logDone sync.WaitGroup
	if !n.cfg.inMemory() {
		// Stopped by stopLog and awaited below.
		logDone.Go(func() {
			if err := n.log.run(stopLog, n.drive); err != nil {
				n.inbox.events.put(diskFailed{err})
			}
		})
	}
	err := n.run(ctx)
	close(n.loopEnded)
	end()
	if network := n.network.get(); network != nil {
		err = errors.Join(err, network.Close())
	}
	close(stopLog)
	logDone.Wait()
	n.checkpoints.background.Wait()
	if n.checkpoints.release != nil {
		n.checkpoints.release()
	}
	err = n.drain(err)
	if n.memory != nil {
		n.memory.leave(n)
		n.memory = nil
	}
	return errors.Join(err, n.release())
}

// drain handles the inputs that still matter after the loop ended with err; it returns Run's error.
func (n *Node) drain(err error) error {
	for _, e := range n.inbox.events.take() {
		if failed, ok := e.(diskFailed); ok && errors.Is(err, ErrClosed) {
			err = failed.err // the disk failed while the loop was ending
		}
	}
	for _, r := range n.inbox.logResults.take() {
		if r.installed != nil && n.memory != nil { // the log in memory is already that of the installed state
			err = errors.Join(err, n.loop.LogWritten(nil, r.installed, r.at))
		}
	}
	return err
}

// Close releases the resources of Open if Run was never called. After Run, Close does nothing.
func (n *Node) Close() error {
	if n.used.Swap(true) {
		return nil
	}
	return n.release()
}

func (n *Node) release() (err error) {
	if n.network.get() == nil && n.cfg.PeerListener != nil {
		err = n.cfg.PeerListener.Close()
	}
	if log := n.log.writer.log; log != nil {
		err = errors.Join(err, log.Close())
	}
	if n.lock != nil {
		err = errors.Join(err, n.lock.Close())
	}
	if n.memory != nil {
		n.memory.giveBack()
	}
	return err
}
