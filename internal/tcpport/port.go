// Package tcpport reserves TCP ports: of a server that starts later or again, and of a server that
// a client must not find.
//
// A port that was found free and closed again does not stay free. Another program may listen on it,
// and the system may give it to an outgoing connection.
package tcpport

import (
	"context"
	"net"
	"strconv"
	"sync"
)

// Port is a TCP port that stays reserved while nobody listens on it: connections are refused, and
// the system gives the port to no other program.
//
// On Linux the port is reserved from Listen or Reserve until Release. Other Unix systems refuse a
// listener on a reserved port, so there Port.Listen and Yield end the reservation, the caller
// renews it with Hold, and the port is free for a moment in between. Elsewhere nothing is reserved.
type Port struct {
	address string

	mu   sync.Mutex
	held func() // ends the reservation; nil: not reserved
}

// Listen listens on an address, of which port 0 is any free port, and reserves the port.
func Listen(address string) (*Port, net.Listener, error) {
	p := &Port{address: address}
	if sharedHold { // must come before the first listener, which would prevent sharing
		p.Hold()
	}
	l, err := p.Listen()
	if err != nil {
		p.Release()
		return nil, nil, err
	}
	p.address = l.Addr().String()
	return p, l, nil
}

// Reserve is Listen for a caller that needs no listener yet.
func Reserve(address string) (*Port, error) {
	p, l, err := Listen(address)
	if err != nil {
		return nil, err
	}
	if err := l.Close(); err != nil {
		p.Release()
		return nil, err
	}
	p.Hold()
	return p, nil
}

// Address returns host:port.
func (p *Port) Address() string { return p.address }

// Listen listens on the port, on which nobody may listen already.
func (p *Port) Listen() (net.Listener, error) {
	p.Yield()
	return new(net.ListenConfig).Listen(context.Background(), "tcp", p.address)
}

// Yield must be called before somebody else listens on the port, such as a child process. Where the
// reservation would prevent that, Yield ends it.
func (p *Port) Yield() {
	if !sharedHold {
		p.Release()
	}
}

// Hold renews the reservation after the listener was closed, where the system has ended it.
func (p *Port) Hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held != nil {
		return
	}
	address, err := net.ResolveTCPAddr("tcp", p.address)
	if err != nil {
		return // Listen reports the same error
	}
	number, release := holdPort(address.IP, address.Port)
	if p.held = release; release != nil && address.Port == 0 {
		p.address = net.JoinHostPort(address.IP.String(), strconv.Itoa(number))
	}
}

// Release ends the reservation. It does not close the listener.
func (p *Port) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held != nil {
		p.held()
		p.held = nil
	}
}
