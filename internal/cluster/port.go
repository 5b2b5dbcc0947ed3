package cluster

import (
	"fmt"
	"net"

	"github.com/gozkd/gozkd/internal/memnet"
	"github.com/gozkd/gozkd/internal/tcpport"
)

// port is a member's port for clients, across restarts. A TCP port stays reserved while the member
// is down: otherwise another program could take it before the member starts again.
type port struct {
	address string
	network *memnet.Network // nil: TCP
	tcp     *tcpport.Port
}

// openPort reserves a port and returns it with its first listener.
func openPort(network *memnet.Network, address string) (*port, net.Listener, error) {
	p := &port{address: address, network: network}
	if network != nil {
		l, err := p.listen()
		return p, l, err
	}
	var l net.Listener
	var err error
	if p.tcp, l, err = tcpport.Listen(address); err != nil {
		return nil, nil, fmt.Errorf("cluster: client port: %w", err)
	}
	p.address = p.tcp.Address()
	return p, l, nil
}

func (p *port) listen() (net.Listener, error) {
	if p.network != nil {
		return p.network.Listen(p.address)
	}
	l, err := p.tcp.Listen()
	if err != nil {
		return nil, fmt.Errorf("cluster: client port: %w", err)
	}
	return l, nil
}

// hold reserves the port after a listener was closed, where that is not so already.
func (p *port) hold() {
	if p.tcp != nil {
		p.tcp.Hold()
	}
}

func (p *port) release() {
	if p.tcp != nil {
		p.tcp.Release()
	}
}
