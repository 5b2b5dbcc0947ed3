package server

import (
	"context"
	"fmt"
	"math"
	"net"
	"sync/atomic"
	"time"
)

// clientPort is where clients connect.
type clientPort struct {
	listener net.Listener             // nil: in process only
	addr     atomic.Pointer[net.Addr] // of listener
	// sockets is how many connections the file descriptors of the process suffice for; 0: the
	// connections are no sockets, or the system does not tell. Set before Start accepts any.
	sockets  int
	claims   claimLimit
	throttle connThrottle
	words    wordGate
}

// listenClients opens the client port, unless there is none.
func (s *Server) listenClients(ctx context.Context) (err error) {
	p := &s.port
	if p.listener = s.cfg.Listener; p.listener == nil && !s.cfg.InProcess {
		keepAlive := time.Duration(-1) // none
		if s.cfg.ClientKeepAlive {
			keepAlive = 0 // the runtime's default
		}
		p.listener, err = (&net.ListenConfig{KeepAlive: keepAlive}).Listen(ctx, "tcp", s.cfg.Listen)
		if err != nil {
			return fmt.Errorf("server: client port: %w", err)
		}
		if s.cfg.ListenBacklog > 0 {
			if err := setBacklog(p.listener, s.cfg.ListenBacklog); err != nil {
				s.cfg.Logger.Warn("the client port has the system's backlog, not that of clientPortListenBacklog", "error", err)
			}
		}
	}
	if p.listener == nil {
		return nil
	}
	addr := p.listener.Addr()
	p.addr.Store(&addr)
	switch addr.Network() {
	case "tcp", "unix":
		if open, limit, ok := fileDescriptors(); ok {
			p.sockets = socketLimit(open, limit)
		}
	}
	return nil
}

// socketLimit returns how many clients may be connected to a process that has open descriptors and
// may have limit. An eighth of the others, 32 to 512, is left for other members, for the log and
// checkpoints, and for HTTP.
func socketLimit(open, limit int64) int {
	kept := min(max(limit/8, 32), 512)
	return int(min(max(limit-open-kept, 8), math.MaxInt32))
}

// maxConns returns the bound on all connections; 0 or negative: none.
func (s *Server) maxConns() int {
	if n := s.live.Load().MaxConns; n != 0 {
		return n
	}
	return s.port.sockets
}
