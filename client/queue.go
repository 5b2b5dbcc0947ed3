package client

import (
	"context"
	"sync"
)

// maxEvents is how many events may wait for OnEvent before the connection is not read any more.
const maxEvents = 4096

// eventQueue keeps events in their order between the connection and OnEvent.
type eventQueue struct {
	mu     sync.Mutex
	change sync.Cond // something below changed
	events []Event
	closed bool
	// pushed and told count events, since the beginning: those that came, and those that OnEvent has returned from.
	pushed, eventsDone uint64
}

func (q *eventQueue) init() { q.change.L = &q.mu }

// push appends an event; it never waits. Behind close it does nothing.
func (q *eventQueue) push(e Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.events = append(q.events, e)
		q.pushed++
		q.change.Broadcast()
	}
}

// close ends deliver when all that is there was delivered.
func (q *eventQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.change.Broadcast()
}

// awaitRoom returns when few enough events wait, or none will come.
func (q *eventQueue) awaitRoom() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.events) >= maxEvents && !q.closed {
		q.change.Wait()
	}
}

// deliver hands the events over, one after the other, until the queue is closed and empty. Then it closes told.
func (q *eventQueue) deliver(to func(Event), eventsDone chan<- struct{}) {
	defer close(eventsDone)
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
			q.eventsDone++
			q.change.Broadcast()
			q.mu.Unlock()
		}
	}
}

// AwaitEvents returns when OnEvent has returned from all events that had come when AwaitEvents was called. An event comes
// before the reply to any later request: after a request, all that happened before it has been told. The error is that of
// ctx. OnEvent must not call it.
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
	for want := q.pushed; q.eventsDone < want; {
		if err := ctx.Err(); err != nil {
			return err
		}
		q.change.Wait()
	}
	return nil
}
