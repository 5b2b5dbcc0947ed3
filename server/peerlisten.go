package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/internal/serverlist"
)

// listenPeers opens the port for other members: where they are told that this server is, and on the
// addresses of this server's own line. The latter closes again, see followPeerAddress.
func (s *Server) listenPeers(ctx context.Context) (net.Listener, error) {
	if s.cfg.PeerListener != nil || s.alone() {
		return s.cfg.PeerListener, nil
	}
	j, m := newJoinedListener(), &s.port.peerMove
	configured, wanted := s.configuredPeerAddress(), s.wantedPeerAddress()
	var moved, err error
	if wanted != configured {
		if m.at, moved = j.open(ctx, wanted, s.cfg.Logger); moved == nil {
			for address := range strings.SplitSeq(configured, serverlist.AddressSeparator) {
				_, _ = j.listen(ctx, address) // not needed if somebody else has it now
			}
			m.opened, s.port.peers = wanted, j
			return j, nil
		}
		moved = fmt.Errorf("the address that a reconfig gave it: %w", moved)
	}
	if m.at, err = j.open(ctx, configured, s.cfg.Logger); err != nil {
		return nil, fmt.Errorf("server: peer port: %w", errors.Join(err, moved, j.Close()))
	}
	m.opened, s.port.peers = configured, j
	return j, nil
}

// configuredPeerAddress returns where this server listens for other members by its configuration.
func (s *Server) configuredPeerAddress() string { return cmp.Or(s.cfg.PeerListen, s.peerAddress()) }

// open listens on text, one or several addresses, unless it listens there already. It listens on
// all addresses of this machine if none of these is one of this machine, or not yet. at are the
// listeners for text.
func (j *joinedListener) open(ctx context.Context, text string, logger hclog.Logger) (at []net.Listener, err error) {
	addresses := strings.Split(text, serverlist.AddressSeparator)
	var errs []error
	for _, address := range addresses {
		l, err := j.listen(ctx, address)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		at = append(at, l)
	}
	err = errors.Join(errs...)
	switch {
	case err == nil:
		return at, nil
	case len(at) > 0:
		logger.Warn("this server does not listen for other servers on all addresses of its line", "error", err)
		return at, nil
	case errors.Is(err, syscall.EADDRINUSE): // it may be free by now, but all addresses would be more than it was asked for
		return nil, err
	}
	_, port, splitErr := net.SplitHostPort(addresses[0])
	if splitErr != nil {
		return nil, splitErr
	}
	all := j.onPort(port)
	if !notHere(err) || all == nil {
		var allErr error
		if all, allErr = j.listen(ctx, net.JoinHostPort("", port)); allErr != nil {
			return nil, err
		}
	}
	logger.Warn("the address for other servers is not an address of this machine, so this server listens elsewhere on the same port",
		"address", text, "listen", all.Addr().String(), "error", err)
	return []net.Listener{all}, nil
}

// listen returns the listener for an address, a new one if there is none.
func (j *joinedListener) listen(ctx context.Context, address string) (net.Listener, error) {
	if a, err := resolve(ctx, address); err == nil {
		for _, l := range j.all() {
			if listensAt(l, a) {
				return l, nil
			}
		}
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return l, j.add(l)
}

// onPort returns a listener on a port, or nil.
func (j *joinedListener) onPort(port string) net.Listener {
	for _, l := range j.all() {
		if a, ok := l.Addr().(*net.TCPAddr); ok && strconv.Itoa(a.Port) == port {
			return l
		}
	}
	return nil
}

// resolve returns the address on which a server that is to listen on host:port listens: as
// net.Listen does, it prefers IPv4. The lookup ends with ctx.
func resolve(ctx context.Context, address string) (*net.TCPAddr, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	number, err := net.DefaultResolver.LookupPort(ctx, "tcp", port)
	if err != nil || host == "" {
		return &net.TCPAddr{Port: number}, err
	}
	ips, err := net.DefaultResolver.LookupIPAddr(ctx, host)
	if err != nil {
		return nil, err
	}
	i := max(0, slices.IndexFunc(ips, func(ip net.IPAddr) bool { return ip.IP.To4() != nil }))
	return &net.TCPAddr{IP: ips[i].IP, Port: number, Zone: ips[i].Zone}, nil
}

// listensAt reports whether l accepts connections to an address of this machine.
func listensAt(l net.Listener, address net.Addr) bool {
	at, ok := l.Addr().(*net.TCPAddr)
	a, tcp := address.(*net.TCPAddr)
	return ok && tcp && at.Port == a.Port && (at.IP.IsUnspecified() || at.IP.Equal(a.IP))
}

// joinedListener accepts the connections of several listeners.
type joinedListener struct {
	accepted  chan accepted
	closed    chan struct{}
	close     func() error
	accepting sync.WaitGroup

	mu        sync.Mutex     // guards listeners
	listeners []net.Listener // never empty for long; kept after Close, for Addr
}

type accepted struct {
	conn net.Conn
	err  error
}

func newJoinedListener() *joinedListener {
	j := &joinedListener{accepted: make(chan accepted), closed: make(chan struct{})}
	j.close = sync.OnceValue(j.closeAll)
	return j
}

// add makes a listener one of j's. After Close it closes the listener and returns net.ErrClosed.
func (j *joinedListener) add(l net.Listener) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	select {
	case <-j.closed:
		return errors.Join(net.ErrClosed, l.Close())
	default:
	}
	j.listeners = append(j.listeners, l)
	// Stopped by Close, which waits, or by remove.
	j.accepting.Go(func() { j.acceptFrom(l) })
	return nil
}

// remove closes a listener. Connections that it has accepted stay.
func (j *joinedListener) remove(l net.Listener) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.listeners = slices.DeleteFunc(j.listeners, func(other net.Listener) bool { return other == l })
	return l.Close()
}

// all returns the listeners.
func (j *joinedListener) all() []net.Listener {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.listeners)
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
	j.mu.Lock()
	close(j.closed)
	err := closeUnused(j.listeners...)
	j.mu.Unlock()
	j.accepting.Wait()
	return err
}

// Addr returns the addresses of all listeners.
func (j *joinedListener) Addr() net.Addr { return joinedAddr(j.all()) }

// joinedAddr prints the addresses of listeners as PeerAddress does.
type joinedAddr []net.Listener

func (a joinedAddr) Network() string { return "tcp" }

func (a joinedAddr) String() string {
	all := make([]string, 0, len(a))
	for _, l := range a {
		all = append(all, l.Addr().String())
	}
	return strings.Join(all, serverlist.AddressSeparator)
}
