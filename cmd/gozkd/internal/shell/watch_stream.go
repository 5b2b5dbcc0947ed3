package shell

import (
	"context"
	"strings"
	"sync"

	"github.com/gozkd/gozkd/client"
)

// streamMost bounds the events that wait to be printed. Nobody reads that far behind.
const streamMost = 1 << 16

// event gives an event of the session to the watch that runs, or prints it. The client's goroutine calls it.
func (s *Shell) event(e client.Event) {
	if to := s.stream.Load(); to != nil && to.put(e) {
		return
	}
	if s.printWatches.on() {
		s.onEvent(e)
	}
}

// stream is a queue of the events that a running watch prints. The client must not wait for a command that itself waits for
// the client, so nobody waits to put one in: when the queue is full, events are dropped, and the reader is told.
type stream struct {
	path      string
	recursive bool

	more chan struct{} // 1: there is something in the queue

	mu     sync.Mutex // guards what follows
	events []client.Event
	full   bool // events behind these were dropped
}

func newStream(path string, recursive bool) *stream {
	return &stream{path: path, recursive: recursive, more: make(chan struct{}, 1)}
}

// covers reports whether the watch has something to say of an event.
func (s *stream) covers(e client.Event) bool {
	switch {
	case e.Type == client.EventSession || e.Path == s.path:
		return true
	case !s.recursive:
		return false
	}
	return s.path == "/" || strings.HasPrefix(e.Path, s.path+"/")
}

// put adds an event, if it is one that the watch covers, and reports that.
func (s *stream) put(e client.Event) bool {
	if !s.covers(e) {
		return false
	}
	s.mu.Lock()
	if len(s.events) < streamMost || e.Type == client.EventSession { // of which there are few
		s.events = append(s.events, e)
	} else {
		s.full = true
	}
	s.mu.Unlock()
	select {
	case s.more <- struct{}{}:
	default: // the reader has been told already
	}
	return true
}

// take returns the events that are there, and whether others behind them were dropped.
func (s *stream) take() (events []client.Event, dropped bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	events, dropped = s.events, s.full
	s.events, s.full = nil, false
	return events, dropped
}

// next is take when there are events; it waits for them. None: ctx has ended.
func (s *stream) next(ctx context.Context) (events []client.Event, dropped bool) {
	for {
		if events, dropped = s.take(); len(events) > 0 {
			return events, dropped
		}
		select {
		case <-s.more:
		case <-ctx.Done():
			return nil, false
		}
	}
}
