package server

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"

	"github.com/gozkd/gozkd/internal/serverlist"
)

// listenPeers opens the port for other members: on the addresses of this server's own line, or on all
// addresses if none of these is an address of this machine, or not yet.
func (s *Server) listenPeers() (net.Listener, error) {
	if s.cfg.PeerListener != nil || s.alone() {
		return s.cfg.PeerListener, nil
	}
	own, _ := s.members.Get(uint64(s.cfg.MemberID))
	text := own.PeerAddress()
	if s.cfg.PeerListen != "" {
		text = s.cfg.PeerListen
	}
	addresses := strings.Split(text, serverlist.AddressSeparator)
	listeners := make([]net.Listener, 0, len(addresses))
	var errs []error
	for _, address := range addresses {
		l, err := net.Listen("tcp", address)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		listeners = append(listeners, l)
	}
	err := errors.Join(errs...)
	switch {
	case len(listeners) > 0 && err != nil:
		s.cfg.Logger.Warn("this server does not listen for other servers on all addresses of its line", "error", err)
	case len(listeners) == 0:
		_, port, splitErr := net.SplitHostPort(addresses[0])
		if splitErr != nil {
			return nil, fmt.Errorf("server: peer port: %w", splitErr)
		}
		all, allErr := net.Listen("tcp", net.JoinHostPort("", port))
		if allErr != nil { // most likely the port is in use, and then the first error says so
			return nil, fmt.Errorf("server: peer port: %w", err)
		}
		s.cfg.Logger.Warn("the address for other servers is not an address of this machine, so this server listens on all addresses",
			"address", text, "error", err)
		return all, nil
	}
	if len(listeners) == 1 {
		return listeners[0], nil
	}
	return joinListeners(listeners), nil
}

// joinedListener accepts the connections of several listeners.
type joinedListener struct {
	listeners []net.Listener
	accepted  chan accepted
	closed    chan struct{}
	close     func() error
	accepting sync.WaitGroup
}

type accepted struct {
	conn net.Conn
	err  error
}

func joinListeners(listeners []net.Listener) *joinedListener {
	j := &joinedListener{listeners: listeners, accepted: make(chan accepted), closed: make(chan struct{})}
	j.close = sync.OnceValue(j.closeAll)
	for _, l := range listeners {
		// Stopped by Close, which waits.
		j.accepting.Go(func() { j.acceptFrom(l) })
	}
	return j
}

func (j *joinedListener) acceptFrom(l net.Listener) {
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		select {
		case j.accepted <- accepted{conn, err}:
		case <-j.closed:
			if err == nil {
				_ = conn.Close() // nothing was sent on it
			}
			return
		}
	}
}

// Accept returns the next connection, or error, of any listener.
func (j *joinedListener) Accept() (net.Conn, error) {
	select {
	case a := <-j.accepted:
		return a.conn, a.err
	case <-j.closed:
		return nil, net.ErrClosed
	}
}

// Close closes all listeners.
func (j *joinedListener) Close() error { return j.close() }

func (j *joinedListener) closeAll() error {
	close(j.closed)
	err := closeUnused(j.listeners...)
	j.accepting.Wait()
	return err
}

// Addr returns the addresses of all listeners.
func (j *joinedListener) Addr() net.Addr { return joinedAddr(j.listeners) }

// joinedAddr prints the addresses of listeners as PeerAddress does.
type joinedAddr []net.Listener

func (a joinedAddr) Network() string { return a[0].Addr().Network() }

func (a joinedAddr) String() string {
	all := make([]string, 0, len(a))
	for _, l := range a {
		all = append(all, l.Addr().String())
	}
	return strings.Join(all, serverlist.AddressSeparator)
}
