package cluster

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"

	"github.com/gozkd/gozkd/internal/memnet"
)

// port is a member's port for clients, across restarts. While nobody listens, connections are
// refused, but the port stays reserved: otherwise another program could take it before the member
// starts again.
type port struct {
	network *memnet.Network // nil: TCP
	address string

	mu   sync.Mutex
	held func() // frees the reservation; nil: not reserved
}

// openPort reserves a port and returns it with its first listener.
func openPort(network *memnet.Network, address string) (*port, net.Listener, error) {
	p := &port{network: network, address: address}
	if sharedHold { // must come before the first listener, which would prevent sharing
		p.hold()
	}
	l, err := p.listen()
	if err != nil {
		p.release()
		return nil, nil, err
	}
	p.address = l.Addr().String()
	return p, l, nil
}

func (p *port) listen() (net.Listener, error) {
	if p.network != nil {
		return p.network.Listen(p.address)
	}
	if !sharedHold {
		p.release()
	}
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", p.address)
	if err != nil {
		return nil, fmt.Errorf("cluster: client port: %w", err)
	}
	return l, nil
}

// hold reserves the port while nobody listens. Port 0 becomes a free port. If the system cannot
// reserve the port, it is free until the member comes back.
func (p *port) hold() {
	if p.network != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held != nil {
		return
	}
	address, err := net.ResolveTCPAddr("tcp", p.address)
	if err != nil {
		return // listen reports the same error
	}
	number, letGo := holdPort(address.IP, address.Port)
	if letGo != nil {
		p.held, p.address = letGo, net.JoinHostPort(address.IP.String(), strconv.Itoa(number))
	}
}

func (p *port) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held != nil {
		p.held()
		p.held = nil
	}
}
