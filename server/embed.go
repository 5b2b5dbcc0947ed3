package server

import (
	"context"
	"errors"
	"net"
	"slices"
	"time"

	"github.com/gozkd/gozkd/server/facts"
	"github.com/gozkd/gozkd/server/internal/lifecycle"
)

// Errors of a server that does not serve clients.
var (
	// ErrNotStarted means that Start was not called yet.
	ErrNotStarted = lifecycle.ErrNotStarted
	// ErrNoLeader means that a server does not answer clients because it knows no leader, cannot
	// reach the leader, or has not caught up yet. That may pass.
	ErrNoLeader = errors.New("server: no leader, or not in touch with it")
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
// that still looks for a leader answers when it has found a leader.
func (s *Server) Dial(ctx context.Context) (net.Conn, error) {
	return s.dial(ctx, inProcessAddress, nil)
}

// Dialer returns Dial with the signature of go-zookeeper's Dialer, for zk.WithDialer. Dialer
// connects to this server whatever the address is.
func (s *Server) Dialer() func(network, address string, timeout time.Duration) (net.Conn, error) {
	return func(string, string, time.Duration) (net.Conn, error) { return s.Dial(context.Background()) }
}

// ready reports whether clients can be served.
func (s *Server) ready() bool {
	return s.life.Serving.Load() && !s.leader.lost.Load() && !s.state.isDropped()
}

// NotServing returns nil while the server answers clients, be it only those that accept a read-only
// server (Config.ReadOnlyMode; Status tells). Otherwise it returns the reason:
// ErrNotStarted, ErrNoLeader, or ErrClosed, with the cause if the server stopped by itself.
func (s *Server) NotServing() error {
	switch {
	case !s.life.Accepting.Load():
		return s.life.WhyNot()
	case s.leader.readOnly.Load() && !s.state.isDropped():
		return nil
	case !s.ready() || !s.membersKnown(): // clients of a new ensemble wait for its members
		return ErrNoLeader
	}
	return nil
}

// Ready returns when the server answers clients: it knows a leader, has applied everything that was
// committed when it found the leader, and, in a new ensemble, the members. In an ensemble that may
// change again later: not because the server lags, but when it loses the leader. Start does not
// wait for the members. Ready returns ErrClosed, with the cause if there is one, if the server
// stopped, and an error that wraps ctx's if ctx ends first.
func (s *Server) Ready(ctx context.Context) error {
	return s.state.await(ctx, &s.life, "not serving clients", s.answersClients)
}

// Status returns a recent summary of the server.
func (s *Server) Status() facts.Status {
	st := Status{Member: int(s.cfg.MemberID)}
	if !s.life.Accepting.Load() {
		return st
	}
	node := s.node.Status()
	st.Leader, st.Mode, st.Zxid = int(node.Leader), s.facts.mode(), int64(s.state.lastZxid())
	st.Serving = s.ready() && node.Current
	behind := !s.life.Serving.Load() || s.leader.catchingUp.Load() || s.state.isDropped()
	st.CatchingUp = node.Leader != 0 && behind
	st.LeavesClients = s.leader.leavesClients(node)
	set, _ := s.ensemble()
	st.Whole = s.alone() || !node.Joining && slices.Equal(slices.Sorted(slices.Values(node.Voters)), slices.Sorted(slices.Values(set.Voters())))
	return st
}
