package consensus

import (
	"sync"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/gozkd/gozkd/consensus/internal/core"
	"github.com/gozkd/gozkd/consensus/internal/turn"
)

// mailbox is an unbounded queue from many senders to one receiver. Its senders are bounded
// elsewhere: requests by the server's limits, appends by raft.
type mailbox[T any] struct {
	mu    sync.Mutex
	items []T
	spare []T
	wake  chan struct{} // capacity 1: one signal stands for everything that is queued
}

func newMailbox[T any]() *mailbox[T] { return &mailbox[T]{wake: make(chan struct{}, 1)} }

func (m *mailbox[T]) put(items ...T) {
	m.mu.Lock()
	m.items = append(m.items, items...)
	m.mu.Unlock()
	signal(m.wake)
}

// signal fills a channel of capacity 1.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// take returns everything that is queued. The slice is valid until the next take.
func (m *mailbox[T]) take() []T {
	m.mu.Lock()
	defer m.mu.Unlock()
	items := m.items
	clear(m.spare)
	m.items, m.spare = m.spare[:0], items
	return items
}

func (m *mailbox[T]) empty() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.items) == 0
}

// inbox is the mailbox of the loop. Requests and results of the log come in bulk, so they have
// queues of their own, which need no allocation per item. No order is kept between the three kinds.
type inbox struct {
	mu    sync.Mutex
	items inputs
	spare inputs
	wake  chan struct{} // capacity 1
}

// inputs are everything that the loop takes from its inbox in one turn.
type inputs struct {
	logResults []logResult
	events     []event
	requests   []request
}

// request is a call of Propose.
type request struct {
	payload []byte
	ref     any
}

// logResult says that appends are durable.
type logResult struct {
	responses []*raftpb.Message
	installed *turn.Received // nil: no checkpoint was installed
	at        time.Time      // when they became durable, by Config.Now
}

func (in *inputs) len() int { return len(in.logResults) + len(in.events) + len(in.requests) }

func (in *inputs) clear() {
	clear(in.logResults)
	clear(in.events)
	clear(in.requests)
	in.logResults, in.events, in.requests = in.logResults[:0], in.events[:0], in.requests[:0]
}

func newInbox() *inbox { return &inbox{wake: make(chan struct{}, 1)} }

// put queues an event and wakes the loop.
func (b *inbox) put(e event) {
	b.add(e)
	b.signal()
}

// add queues an event without waking the loop, which looks by itself or is woken by signal.
func (b *inbox) add(e event) {
	b.mu.Lock()
	b.items.events = append(b.items.events, e)
	b.mu.Unlock()
}

// addRequest is add for a request.
func (b *inbox) addRequest(r request) {
	b.mu.Lock()
	b.items.requests = append(b.items.requests, r)
	b.mu.Unlock()
}

// putLogResult queues a result of the log and wakes the loop.
func (b *inbox) putLogResult(r logResult) {
	b.mu.Lock()
	b.items.logResults = append(b.items.logResults, r)
	b.mu.Unlock()
	b.signal()
}

func (b *inbox) signal() { signal(b.wake) }

// take returns everything that is queued. The result is valid until the next take.
func (b *inbox) take() inputs {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := b.items
	b.spare.clear()
	b.items, b.spare = b.spare, taken
	return taken
}

func (b *inbox) empty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.items.len() == 0
}

// event is a message of another goroutine to the loop, which calls handle. An error ends the node.
type event interface{ handle(n *Node) error }

type (
	readRequested     struct{ read func() }
	messageReceived   struct{ *core.Message }
	diskFailed        struct{ err error }
	checkpointWritten struct {
		index uint64
		took  time.Duration
	}
	checkpointReceived struct{ *turn.Received }
	transferEnded      struct {
		to uint64
		ok bool
	}
	handOverRequested struct {
		to   uint64
		done chan struct{}
	}
	coreCall func(*core.Core) // of a method that has no other effect
)

func (e readRequested) handle(n *Node) error {
	n.core.Read(e.read)
	return nil
}

func (e messageReceived) handle(n *Node) error {
	if n.network.foreign(e.From, n.core.Cluster()) {
		return nil
	}
	n.logJoin(e.Message)
	return n.core.Step(e.Message)
}

func (e diskFailed) handle(*Node) error { return e.err }

func (e checkpointWritten) handle(n *Node) error {
	n.cfg.Logger.Debug("checkpoint written", "index", e.index)
	return n.loop.CheckpointWritten(e.index, e.took)
}

func (e checkpointReceived) handle(n *Node) error {
	n.loop.CheckpointReceived(e.Received)
	return nil
}

func (e transferEnded) handle(n *Node) error {
	if e.ok {
		n.peers.transferSucceeded(e.to)
	}
	return n.loop.TransferEnded(e.to, e.ok)
}

func (e handOverRequested) handle(n *Node) error {
	n.loop.HandOver(e.to, func() { close(e.done) })
	return nil
}

func (e coreCall) handle(n *Node) error {
	e(n.core)
	return nil
}
