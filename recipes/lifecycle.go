package recipes

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/internal/wakeup"
)

// lifecycle holds the context of background work, which Close ends, and counts what Close awaits.
type lifecycle struct {
	ctx            context.Context // of background work
	cancel         context.CancelFunc
	closing        chan struct{}
	closeBegun     atomic.Bool
	closed         chan struct{}  // closed at the end of Close
	calls          callCounter    // calls and background work
	activeProbes   callCounter    // unanswered probes
	abandonedCalls abandonedCalls // included in calls
	loops          sync.WaitGroup // probeLoop, followEvents, watches
}

func newLifecycle() lifecycle {
	ctx, cancel := context.WithCancel(context.Background())
	return lifecycle{ctx: ctx, cancel: cancel, closing: make(chan struct{}), closed: make(chan struct{})}
}

// callCounter counts calls in progress. Unlike a sync.WaitGroup, a callCounter can be closed, and
// wait has a time limit.
type callCounter struct {
	mu     sync.Mutex
	n      int
	closed bool
	idle   wakeup.Broadcast // sent when n is 0
}

// tryAdd counts a call, or returns false after close.
func (p *callCounter) tryAdd() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.n++
	return true
}

// add counts a call even after close, for a caller that is itself counted.
func (p *callCounter) add() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n++
}

func (p *callCounter) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.n--; p.n == 0 {
		p.idle.Send()
	}
}

func (p *callCounter) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
}

// wait waits until the count is 0, for at most limit, and returns the count.
func (p *callCounter) wait(limit time.Duration) int {
	p.mu.Lock()
	if p.n == 0 {
		p.mu.Unlock()
		return 0
	}
	idle := p.idle.Next()
	p.mu.Unlock()
	select {
	case <-idle:
	case <-time.After(limit):
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.n
}

// abandonedCalls holds the requests whose callers stopped waiting. The zero value is empty. Safe
// for concurrent use.
type abandonedCalls struct{ all sync.Map } // its keys are closed when their requests have ended

func (l *abandonedCalls) add() chan struct{} {
	finished := make(chan struct{})
	l.all.Store(finished, nil)
	return finished
}

func (l *abandonedCalls) remove(finished chan struct{}) {
	l.all.Delete(finished)
	close(finished)
}

// wait waits for the requests that are present now. It fails when ctx ends or closing is closed.
func (l *abandonedCalls) wait(ctx context.Context, closing <-chan struct{}) error {
	var now []chan struct{}
	for finished := range l.all.Range {
		now = append(now, finished.(chan struct{}))
	}
	for _, finished := range now {
		select {
		case <-finished:
		case <-ctx.Done():
			return newCtxError(ctx, false)
		case <-closing:
			return ErrClosed
		}
	}
	return nil
}
