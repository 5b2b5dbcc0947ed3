package memnet

import (
	"context"
	"net"
	"sync"
	"syscall"
	"time"
)

// Network connects hosts, which exist by being named. Make it with [New].
type Network struct {
	latency time.Duration

	mu        sync.Mutex
	listeners map[string]*listener // by address
	conns     map[*conn]struct{}   // ends that are neither closed nor torn
	links     map[link]linkState   // those that were ever changed
	changed   chan struct{}        // closed by the next change of a link; nil: nobody waits for it
	dialled   int
}

// link is one direction between two hosts.
type link struct{ from, to string }

type linkState struct {
	cut   bool
	delay time.Duration // all that bytes take
}

// New returns a network without listeners. What is written takes the latency, on every link, before it can be read. In a
// bubble of testing/synctest it should not be 0 if somebody always has something to do, since time would never pass then.
func New(latency time.Duration) *Network {
	return &Network{
		latency: latency, listeners: make(map[string]*listener), conns: make(map[*conn]struct{}), links: make(map[link]linkState),
	}
}

// Listen opens a port. The address is host:port, as Dial is to name it. Errors are *net.OpError: EADDRINUSE while another
// listener has that address, until it is closed or its host killed, or what is wrong with the address.
func (n *Network) Listen(address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, opError("listen", nil, Addr(address), err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners[address] != nil {
		return nil, opError("listen", nil, Addr(address), syscall.EADDRINUSE)
	}
	l := newListener(n, host, address)
	n.listeners[address] = l
	return l, nil
}

// Dial connects the host from with an address. Without a listener it is refused at once (ECONNREFUSED). While a link between
// the two is cut, in either direction, and until the listener accepts, it waits; ctx ends that, with its error. ctx means
// nothing to the connection. Errors are *net.OpError. The connection's own address is a port of from that says nothing.
func (n *Network) Dial(ctx context.Context, from, address string) (net.Conn, error) {
	c, err := n.dial(ctx, from, address)
	if err != nil {
		return nil, opError("dial", nil, Addr(address), err)
	}
	return c, nil
}

func (n *Network) dial(ctx context.Context, from, address string) (*conn, error) {
	to, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if err := n.awaitLinks(ctx, from, to); err != nil {
		return nil, err
	}
	mine, theirs, l := n.connect(from, to, address)
	if l == nil {
		return nil, syscall.ECONNREFUSED
	}
	select {
	case l.conns <- theirs:
		return mine, nil
	case <-l.shut:
		err = syscall.ECONNREFUSED
	case <-ctx.Done():
		err = ctx.Err()
	}
	_, _ = mine.Close(), theirs.Close() // nobody has seen them
	return nil, err
}

// awaitLinks returns when no link between two hosts is cut.
func (n *Network) awaitLinks(ctx context.Context, from, to string) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n.mu.Lock()
		if !n.links[link{from, to}].cut && !n.links[link{to, from}].cut {
			n.mu.Unlock()
			return nil
		}
		if n.changed == nil {
			n.changed = make(chan struct{})
		}
		changed := n.changed
		n.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// connect makes both ends of a connection to who listens on the address; the listener is nil if nobody does. The network
// knows the ends before anybody else, so that nothing that befalls their link in between passes them by.
func (n *Network) connect(from, to, address string) (mine, theirs *conn, l *listener) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if l = n.listeners[address]; l == nil {
		return nil, nil, nil
	}
	there, back := newStream(link{from, to}, n.state(link{from, to})), newStream(link{to, from}, n.state(link{to, from}))
	local := Addr(net.JoinHostPort(from, port(n.dialled)))
	n.dialled++
	mine = &conn{network: n, in: back, out: there, local: local, remote: l.address}
	theirs = &conn{network: n, in: there, out: back, local: l.address, remote: local}
	n.conns[mine], n.conns[theirs] = struct{}{}, struct{}{}
	return mine, theirs, l
}

// state returns what bytes on the link meet. The caller holds the mutex.
func (n *Network) state(l link) linkState {
	s := n.links[l]
	s.delay += n.latency
	return s
}

// Cut stops what goes from one host to another, or lets it go on. Bytes are held meanwhile (M2), and whoever dials waits.
func (n *Network) Cut(from, to string, cut bool) {
	n.change(link{from, to}, func(s *linkState) { s.cut = cut })
}

// Delay makes what is written from now on, from one host to another, take d longer than the network's latency. Bytes stay in
// order: those behind delayed ones wait for them, even after the delay was taken back with 0.
func (n *Network) Delay(from, to string, d time.Duration) {
	n.change(link{from, to}, func(s *linkState) { s.delay = d })
}

func (n *Network) change(l link, change func(*linkState)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.links[l]
	change(&s)
	n.links[l] = s
	for c := range n.conns {
		for _, s := range [...]*stream{c.in, c.out} { // either end may be closed, so don't ask whose stream it is
			if s.link == l {
				s.setLink(n.state(l))
			}
		}
	}
	if n.changed != nil {
		close(n.changed)
		n.changed = nil
	}
}

// Tear breaks all connections between two hosts, or with b empty those of a with everybody. Both ends get ECONNRESET.
func (n *Network) Tear(a, b string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for c := range n.conns {
		if l := c.out.link; l.from == a && (b == "" || l.to == b) || l.to == a && (b == "" || l.from == b) {
			c.in.tear()
			c.out.tear()
			delete(n.conns, c)
		}
	}
}

// Kill makes a host vanish: it closes its listeners, so that whoever dials is refused, and breaks its connections. The host
// may listen and dial again.
func (n *Network) Kill(host string) {
	for _, l := range n.listenersOf(host) {
		l.shutDown()
	}
	n.Tear(host, "")
}

func (n *Network) listenersOf(host string) []*listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	var of []*listener
	for _, l := range n.listeners {
		if l.host == host {
			of = append(of, l)
		}
	}
	return of
}

// forget is for an end that was closed.
func (n *Network) forget(c *conn) {
	n.mu.Lock()
	delete(n.conns, c)
	n.mu.Unlock()
}
