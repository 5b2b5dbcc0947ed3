package server

import (
	"context"
	"net"
	"time"
)

// inProcessAddress is the address at both ends of a connection within the process: for ACLs such a
// client is on this machine. Nobody listens there.
const inProcessHost, inProcessAddress = "127.0.0.1", "127.0.0.1:0"

// Addr returns the address of the client port, or nil before Start has opened it and if
// Config.InProcess is set.
func (s *Server) Addr() net.Addr { return s.ports.plain.Addr() }

// SecureAddr returns the address of the port for TLS, or nil before Start has opened it and if
// there is none.
func (s *Server) SecureAddr() net.Addr { return s.ports.secure.Addr() }

// ConnectString returns host:port for a client's connect string, or "" before Start has opened the
// port. With Config.InProcess, clients accept the address, but only Dialer can reach it.
func (s *Server) ConnectString() string {
	if s.cfg.InProcess {
		return inProcessAddress
	}
	if a := s.Addr(); a != nil {
		return a.String()
	}
	return ""
}

// Dial returns a connection to this server that does not leave the process: without a port and
// without system calls. Dial does not wait: ctx only makes it usable as a dial function. A server
// that still looks for a leader answers when it has found a leader. The connection counts as any
// other client's: the server closes it at once if there are too many connections, or too many for
// its memory. DialAs is let in.
func (s *Server) Dial(ctx context.Context) (net.Conn, error) {
	return s.dial(ctx, inProcessAddress, nil)
}

// Dialer returns Dial with the signature of go-zookeeper's Dialer, for zk.WithDialer. Dialer
// connects to this server whatever the address is.
func (s *Server) Dialer() func(network, address string, timeout time.Duration) (net.Conn, error) {
	return func(string, string, time.Duration) (net.Conn, error) { return s.Dial(context.Background()) }
}
