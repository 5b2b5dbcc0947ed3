// Package pipenet is a network of pipes within the process: no port, no system call, and at home in
// testing/synctest bubbles, where a socket would keep time from passing.
package pipenet

import (
	"net"
	"sync"
)

// Listener hands out one end of each pipe that Dial makes.
type Listener struct {
	conns  chan net.Conn // unbuffered: Dial returns when the server has the connection
	closed chan struct{}
	once   sync.Once
}

// Listen returns a listener that nobody has dialled yet.
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

// Close ends Accept and Dial; connections live on.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr returns an address that looks like one of the loopback.
func (l *Listener) Addr() net.Addr { return addr{} }

type named struct{ net.Conn }

func (named) RemoteAddr() net.Addr { return addr{} }

type addr struct{}

func (addr) Network() string { return "pipe" }
func (addr) String() string  { return "127.0.0.1:0" }
