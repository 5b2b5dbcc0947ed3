// Package ports holds the ports on which a server listens, and moves them.
package ports

import (
	"net"
	"sync"
	"sync/atomic"
)

// Port is a port with at most one listener at a time. The zero value has none. Connections that a
// listener has accepted stay when it closes. A Port is safe for concurrent use.
type Port struct {
	addr atomic.Pointer[net.Addr] // of the last listener; nil: there was none

	mu       sync.Mutex // guards these
	listener net.Listener
	closed   bool
}

// Addr returns the address of the last listener, or nil if there was none.
func (p *Port) Addr() net.Addr {
	if a := p.addr.Load(); a != nil {
		return *a
	}
	return nil
}

// Listener returns the listener, or nil.
func (p *Port) Listener() net.Listener {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.listener
}

// Replace closes the listener, and makes l, which may be nil, the new one. It returns false, and
// keeps nothing, if the port is closed.
func (p *Port) Replace(l net.Listener) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	if p.listener != nil {
		_ = p.listener.Close() // an error would say that it was closed before
	}
	if p.listener = l; l != nil {
		a := l.Addr()
		p.addr.Store(&a)
	}
	return true
}

// Close closes the listener, and the port for later ones.
func (p *Port) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.listener == nil {
		return nil
	}
	return p.listener.Close()
}
