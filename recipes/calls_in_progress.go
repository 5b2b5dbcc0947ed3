package recipes

import (
	"context"
	"sync"
	"time"
)

// pending counts what is still going on. Unlike a sync.WaitGroup it can be waited for with patience, and be closed.
type callCounter struct {
	mu     sync.Mutex
	n      int
	closed bool
	idle   chan struct{} // non-nil while somebody waits; closed when n is 0
}

// begin counts one more. False after close.
func (p *callCounter) tryAdd() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.n++
	return true
}

// more counts one more, also after close: for who is counted already.
func (p *callCounter) add() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n++
}

func (p *callCounter) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.n--; p.n == 0 && p.idle != nil {
		close(p.idle)
		p.idle = nil
	}
}

func (p *callCounter) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
}

// wait waits until nothing goes on, or for patience. It returns what still goes on.
func (p *callCounter) wait(patience time.Duration) int {
	p.mu.Lock()
	if p.n == 0 {
		p.mu.Unlock()
		return 0
	}
	if p.idle == nil {
		p.idle = make(chan struct{})
	}
	idle := p.idle
	p.mu.Unlock()
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-idle:
	case <-late.C:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.n
}

// leftovers are the requests whose callers wait for them no more. The zero value has none. Safe for concurrent use.
type abandonedCalls struct {
	mu  sync.Mutex
	all map[chan struct{}]struct{} // each closed when its request has come to its end
}

func (l *abandonedCalls) add() chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = make(map[chan struct{}]struct{})
	}
	one := make(chan struct{})
	l.all[one] = struct{}{}
	return one
}

func (l *abandonedCalls) remove(one chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.all, one)
	close(one)
}

// wait waits until those that there are now have come to their end. It fails when ctx ends, or when closing is closed.
func (l *abandonedCalls) wait(ctx context.Context, closing <-chan struct{}) error {
	l.mu.Lock()
	now := make([]chan struct{}, 0, len(l.all))
	for one := range l.all {
		now = append(now, one)
	}
	l.mu.Unlock()
	for _, one := range now {
		select {
		case <-one:
		case <-ctx.Done():
			return newCtxError(ctx, false)
		case <-closing:
			return ErrClosed
		}
	}
	return nil
}
