package consensus

import "sync"

// mailbox is an unbounded queue from many goroutines to one. Its senders are bounded elsewhere: requests by the server's
// limits on what is in flight, appends by raft.
type mailbox[T any] struct {
	mu    sync.Mutex
	items []T
	spare []T
	wake  chan struct{} // capacity 1: one signal stands for all that is queued
}

func newMailbox[T any]() *mailbox[T] { return &mailbox[T]{wake: make(chan struct{}, 1)} }

func (m *mailbox[T]) put(items ...T) {
	m.add(items...)
	m.signal()
}

// add queues without waking the receiver, who will look by itself, or is woken by signal.
func (m *mailbox[T]) add(items ...T) {
	m.mu.Lock()
	m.items = append(m.items, items...)
	m.mu.Unlock()
}

func (m *mailbox[T]) signal() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// take returns all that is queued. The slice is valid until the next take.
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
