package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/gozkd/gozkd/internal/memnet"
)

// ErrNotStarted says that Start was not called yet.
var ErrNotStarted = errors.New("server: not started")

// inProcessAddress is what clients in this process come from and connect to: for ACLs they are on this machine. Nobody listens there.
const inProcessAddress = "127.0.0.1:0"

// Addr returns the address of the client port, or nil before Start has opened it. With Config.InProcess there is no port.
func (s *Server) Addr() net.Addr {
	if a := s.addr.Load(); a != nil {
		return *a
	}
	return nil
}

// ConnectString returns host:port for a client's connect string, or "" before Start has opened the port. With
// Config.InProcess it is an address that clients accept, and that only Dialer can reach.
func (s *Server) ConnectString() string {
	if s.cfg.InProcess {
		return inProcessAddress
	}
	if a := s.Addr(); a != nil {
		return a.String()
	}
	return ""
}

// Dial returns a connection to this server that does not leave the process: no port and no system call. ctx is for the sake of
// those who want a dial function; nothing is waited for. A server that still looks for a leader answers when it has one.
func (s *Server) Dial(ctx context.Context) (net.Conn, error) {
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case !s.accepting.Load():
		return nil, &net.OpError{Op: "dial", Net: "memory", Err: s.whyNot()}
	}
	client, ours := memnet.Pipe(inProcessAddress, inProcessAddress)
	s.admit(ours)
	return client, nil
}

// Dialer returns Dial in the shape of go-zookeeper's Dialer, for zk.WithDialer. Whatever address it is called with, it connects to
// this server.
func (s *Server) Dialer() func(network, address string, timeout time.Duration) (net.Conn, error) {
	return func(string, string, time.Duration) (net.Conn, error) { return s.Dial(context.Background()) }
}

// whyNot says why a server does not take connections: ErrClosed, with the cause where it stopped by itself, or ErrNotStarted.
func (s *Server) whyNot() error {
	select {
	case <-s.ended:
		if cause := s.cause.Load(); cause != nil {
			return fmt.Errorf("%w: %w", ErrClosed, *cause)
		}
		return ErrClosed
	default:
		return ErrNotStarted
	}
}

// Ready returns when the server answers clients: it knows a leader and has what was committed before that one's time. That may
// come and go in an ensemble; Start has waited for it once. It returns ErrClosed, with the cause if there is one, when the server stopped, and
// an error that wraps ctx's when ctx ends first.
func (s *Server) Ready(ctx context.Context) error {
	for {
		changed := s.reached.changed()
		if s.ready() && s.node.Status().Current {
			return nil
		}
		select {
		case <-changed:
		case <-s.ended:
			return s.whyNot()
		case <-ctx.Done():
			return fmt.Errorf("server: not serving clients: %w", ctx.Err())
		}
	}
}

// Status is what a server says of itself.
type Status struct {
	Serving bool   // clients are answered
	Mode    string // standalone, leader, follower or observer; "" before Start has opened the data
	Member  int    // this server's number
	Leader  int    // the leader's as far as this server knows, 0 for none; a server alone leads itself
	Zxid    int64  // of the last change that is applied here
	// Whole: all members that shall vote do, and, as far as the leader knows, none has come without data. One that did is let in
	// first, as may happen to the last one when a new ensemble is formed: until it votes, fewer members can be missed.
	Whole bool
}

// Status returns a recent view.
func (s *Server) Status() Status {
	st := Status{Member: int(s.cfg.MemberID)}
	if !s.accepting.Load() {
		return st
	}
	node := s.node.Status()
	st.Leader, st.Mode, st.Zxid = int(node.Leader), s.mode(), int64(s.facts().zxid)
	st.Serving = s.ready() && node.Current
	set, _ := s.ensemble()
	st.Whole = s.alone() || !node.Joining && slices.Equal(slices.Sorted(slices.Values(node.Voters)), slices.Sorted(slices.Values(set.Voters())))
	return st
}
