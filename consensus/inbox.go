package consensus

import (
	"sync"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/gozkd/gozkd/consensus/internal/core"
	"github.com/gozkd/gozkd/consensus/internal/turn"
	"github.com/gozkd/gozkd/internal/wakeup"
)

// mailbox is an unbounded queue from many senders to one receiver. Its senders are bounded
// elsewhere: requests by the server's limits, appends by raft.
type mailbox[T any] struct {
	mu    sync.Mutex
	items []T
	spare []T
	wake  chan struct{} // capacity 1: one signal stands for everything that is queued
}

func newMailbox[T any](wake chan struct{}) *mailbox[T] { return &mailbox[T]{wake: wake} }

func (m *mailbox[T]) put(items ...T) {
	m.add(items...)
	wakeup.Send(m.wake)
}

// add queues items without waking the receiver, which looks by itself or is woken by inbox.signal.
func (m *mailbox[T]) add(items ...T) {
	m.mu.Lock()
	m.items = append(m.items, items...)
	m.mu.Unlock()
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

// inbox holds what other goroutines have for the loop. Requests and results of the log come in
// bulk, so they have mailboxes of their own, which need no allocation per item. No order is kept
// between the three.
type inbox struct {
	wake       chan struct{} // capacity 1
	logResults *mailbox[logResult]
	events     *mailbox[event]
	requests   *mailbox[request]
}

type request struct {
	payload []byte
	ref     any
}

type logResult struct {
	responses []*raftpb.Message
	installed *turn.Received // nil: no checkpoint was installed
	at        time.Time      // when they became durable, by Config.Now
}

func newInbox() *inbox {
	wake := make(chan struct{}, 1)
	return &inbox{wake, newMailbox[logResult](wake), newMailbox[event](wake), newMailbox[request](wake)}
}

func (b *inbox) signal() { wakeup.Send(b.wake) }

func (b *inbox) empty() bool { return b.logResults.empty() && b.events.empty() && b.requests.empty() }

// event is a message of another goroutine to the loop, which calls handle. An error ends the node.
type event interface{ handle(n *Node) error }

type (
	messageReceived struct{ *core.Message }
	diskFailed      struct{ err error }
	coreCall        func(*core.Core) // of a method that has no other effect
	nodeCall        func(*Node) error
)

func (e messageReceived) handle(n *Node) error {
	if n.network.foreign(e.From, n.core.Cluster()) {
		return nil
	}
	n.logJoin(e.Message)
	return n.core.Step(e.Message)
}

func (e diskFailed) handle(*Node) error { return e.err }

func (e coreCall) handle(n *Node) error {
	e(n.core)
	return nil
}

func (e nodeCall) handle(n *Node) error { return e(n) }
