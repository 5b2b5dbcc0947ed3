package recipes

import (
	"sync"
	"time"
)

// pending counts what is still going on. Unlike a sync.WaitGroup it can be waited for with patience, and be closed.
type pending struct {
	mu     sync.Mutex
	n      int
	closed bool
	idle   chan struct{} // non-nil while somebody waits; closed when n is 0
}

// begin counts one more. False after close.
func (p *pending) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.n++
	return true
}

// more counts one more, also after close: for who is counted already.
func (p *pending) more() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n++
}

func (p *pending) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.n--; p.n == 0 && p.idle != nil {
		close(p.idle)
		p.idle = nil
	}
}

func (p *pending) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
}

// wait waits until nothing goes on, or for patience. It returns what still goes on.
func (p *pending) wait(patience time.Duration) int {
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
