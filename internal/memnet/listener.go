package memnet

import (
	"net"
	"sync"
	"sync/atomic"
)

// listener is a port of a host.
type listener struct {
	network *Network
	host    string
	address Addr
	conns   chan net.Conn // unbuffered: whoever dialled is accepted

	closed atomic.Bool // by its owner
	once   sync.Once
	shut   chan struct{}
}

func newListener(n *Network, host, address string) *listener {
	return &listener{network: n, host: host, address: Addr(address), conns: make(chan net.Conn), shut: make(chan struct{})}
}

// Accept waits for somebody who dials, or until the listener is closed or its host killed (net.ErrClosed).
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.shut:
		return nil, opError("accept", nil, l.address, net.ErrClosed)
	}
}

// Close frees the address. What was accepted goes on. Closing it again is net.ErrClosed; closing it after Kill is not.
func (l *listener) Close() error {
	if l.closed.Swap(true) {
		return opError("close", nil, l.address, net.ErrClosed)
	}
	l.shutDown()
	return nil
}

func (l *listener) Addr() net.Addr { return l.address }

func (l *listener) shutDown() {
	l.once.Do(func() {
		l.network.mu.Lock()
		delete(l.network.listeners, string(l.address))
		l.network.mu.Unlock()
		close(l.shut)
	})
}
