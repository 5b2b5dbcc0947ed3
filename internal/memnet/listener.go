package memnet

import (
	"net"
	"sync"
)

type listener struct {
	network *Network
	host    string
	address Addr
	conns   chan net.Conn // unbuffered: Dial returns when the connection is accepted

	closing sync.Once
	closed  chan struct{} // closed by Close
	once    sync.Once
	done    chan struct{} // closed by Close or Kill
}

func newListener(n *Network, host, address string) *listener {
	return &listener{
		network: n, host: host, address: Addr(address), conns: make(chan net.Conn),
		closed: make(chan struct{}), done: make(chan struct{}),
	}
}

// Accept waits for a Dial, or until the listener is closed (net.ErrClosed). After Kill it waits for
// Close: the process of a killed host would not see an error.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, opError("accept", nil, l.address, net.ErrClosed)
	}
}

// Close frees the address. Accepted connections stay open. A second Close returns net.ErrClosed; a
// first Close after Kill does not.
func (l *listener) Close() error {
	err := opError("close", nil, l.address, net.ErrClosed)
	l.closing.Do(func() {
		l.shutDown()
		close(l.closed)
		err = nil
	})
	return err
}

func (l *listener) Addr() net.Addr { return l.address }

func (l *listener) shutDown() {
	l.once.Do(func() {
		l.network.mu.Lock()
		delete(l.network.listeners, string(l.address))
		l.network.mu.Unlock()
		close(l.done)
	})
}
