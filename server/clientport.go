package server

import (
	"context"
	"fmt"
	"math"
	"net"
	"time"

	"github.com/gozkd/gozkd/internal/fair"
	"github.com/gozkd/gozkd/server/internal/bounds"
	"github.com/gozkd/gozkd/server/internal/ports"
)

// clientPort holds the listeners for clients and members, and what bounds the connections of
// clients.
type clientPort struct {
	plain  ports.Clients  // without a listener: in process only
	secure ports.Port     // without a listener: there is none
	peers  *ports.Members // nil: there are none, or Config.PeerListener
	// sockets is how many connections the file descriptors of the process suffice for; 0: the
	// connections are no sockets, or the system does not tell. Set before Start accepts any.
	sockets  int
	claims   *fair.Rate // without merit, of each address, by the runtime's clock
	throttle bounds.Bucket
	words    wordGate
	// handshakes are the TLS handshakes under way, which cost memory and time before the client has
	// proved anything.
	handshakes fair.Places[*conn]
}

// listenClients opens the ports for clients, unless there are none.
func (s *Server) listenClients(ctx context.Context) (err error) {
	p, c := &s.port, s.cfg
	l := c.Listener
	if l == nil && !c.InProcess {
		if l, err = c.listen(ctx, c.Listen); err != nil {
			return fmt.Errorf("server: client port: %w", err)
		}
	}
	p.opened(&p.plain.Port, l)
	if l = c.SecureListener; l == nil && c.SecureListen != "" {
		if l, err = c.listen(ctx, c.SecureListen); err != nil {
			return fmt.Errorf("server: secure client port: %w", err)
		}
	}
	p.opened(&p.secure, l)
	return nil
}

// listen opens a port for clients.
func (c *Config) listen(ctx context.Context, address string) (net.Listener, error) {
	keepAlive := time.Duration(-1) // none
	if c.ClientKeepAlive {
		keepAlive = 0 // the runtime's default
	}
	l, err := (&net.ListenConfig{KeepAlive: keepAlive}).Listen(ctx, "tcp", address)
	if err == nil && c.ListenBacklog > 0 {
		if err := setBacklog(l, c.ListenBacklog); err != nil {
			c.Logger.Warn("the client port has the system's backlog, not that of clientPortListenBacklog", "error", err)
		}
	}
	return l, err
}

// opened makes l, unless it is nil, the listener of a port.
func (p *clientPort) opened(port *ports.Port, l net.Listener) {
	if l == nil {
		return
	}
	port.Replace(l)
	switch l.Addr().Network() {
	case "tcp", "unix":
		if open, limit, ok := fileDescriptors(); ok {
			p.sockets = socketLimit(open, limit)
		}
	}
}

// socketLimit returns how many clients may be connected to a process that has open descriptors and
// may have limit.
func socketLimit(open, limit int64) int {
	return int(min(max(limit-open-reserved(limit), 8), math.MaxInt32))
}

// reserved returns how many of the file descriptors that the process may have are not for clients:
// a quarter, 32 to 2048. Half of them are for the port of other members, whose bound they are; the
// others are for HTTP, for the log and checkpoints.
func reserved(limit int64) int64 { return min(max(limit/4, 32), 2048) }

// peerConns returns the bound on the connections that the port for other members accepts; 0: the
// default of the package peer, 1,024, which is also the most.
func peerConns() int {
	if _, limit, ok := fileDescriptors(); ok {
		return int(reserved(limit) / 2)
	}
	return 0
}

// maxConns returns the bound on all connections; 0 or negative: none.
func (s *Server) maxConns() int {
	if n := s.live.Load().MaxConns; n != 0 {
		return n
	}
	return s.port.sockets
}
