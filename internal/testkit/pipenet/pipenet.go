// Package pipenet is a network of pipes within the process. It needs no ports and no system calls,
// and works in testing/synctest bubbles, where waiting for a socket would stop the clock.
package pipenet

import (
	"net"
	"sync"
)

// Listener hands out one end of each pipe that Dial makes.
type Listener struct {
	conns  chan net.Conn // unbuffered: Dial returns when the server has accepted the connection
	closed chan struct{}
	once   sync.Once
}

// Listen returns a new listener.
func Listen() *Listener {
	return &Listener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept waits for a Dial. After Close it returns net.ErrClosed.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Dial connects. After Close it returns net.ErrClosed.
func (l *Listener) Dial() (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- named{server}:
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and Dial. Connections stay open.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr returns an address in the form of a loopback address.
func (l *Listener) Addr() net.Addr { return addr{} }

type named struct{ net.Conn }

func (named) RemoteAddr() net.Addr { return addr{} }

type addr struct{}

func (addr) Network() string { return "pipe" }
func (addr) String() string  { return "127.0.0.1:0" }
