package client

import (
	"context"
	"sync"
)

// maxEvents is how many events may wait for OnEvent before the connection is no longer read.
const maxEvents = 4096

// eventQueue holds events in order between the connection and OnEvent.
type eventQueue struct {
	mu     sync.Mutex
	change sync.Cond // signalled when a field below changes
	events []Event
	closed bool
	// pushed counts the events so far, delivered those that OnEvent has returned from.
	pushed, delivered uint64
}

func (q *eventQueue) init() { q.change.L = &q.mu }

// push appends an event without waiting. After close it does nothing.
func (q *eventQueue) push(e Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.events = append(q.events, e)
		q.pushed++
		q.change.Broadcast()
	}
}

// close makes deliver return when the queue is empty.
func (q *eventQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.change.Broadcast()
}

// awaitRoom waits until the queue has room or is closed.
func (q *eventQueue) awaitRoom() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.events) >= maxEvents && !q.closed {
		q.change.Wait()
	}
}

// deliver calls to with each event, in order, until the queue is closed and empty. Then it closes
// done.
func (q *eventQueue) deliver(to func(Event), done chan<- struct{}) {
	defer close(done)
	for {
		q.mu.Lock()
		for len(q.events) == 0 && !q.closed {
			q.change.Wait()
		}
		batch := q.events
		q.events = nil
		q.change.Broadcast()
		q.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		for _, e := range batch {
			to(e)
			q.mu.Lock()
			q.delivered++
			q.change.Broadcast()
			q.mu.Unlock()
		}
	}
}

// AwaitEvents waits until OnEvent has returned from all events that arrived before the call. An
// event arrives before the reply to any later request, so after a request this covers everything
// that happened before it. The error is that of ctx. OnEvent must not call AwaitEvents.
func (c *Client) AwaitEvents(ctx context.Context) error {
	q := &c.events
	stop := context.AfterFunc(ctx, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.change.Broadcast()
	})
	defer stop()
	q.mu.Lock()
	defer q.mu.Unlock()
	for want := q.pushed; q.delivered < want; {
		if err := ctx.Err(); err != nil {
			return err
		}
		q.change.Wait()
	}
	return nil
}
