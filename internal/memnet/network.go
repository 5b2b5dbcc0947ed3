package memnet

import (
	"context"
	"maps"
	"net"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/gozkd/gozkd/internal/wakeup"
)

// Network connects hosts. A host exists as soon as it is named. Use [New].
type Network struct {
	latency time.Duration

	mu        sync.Mutex
	listeners map[string]*listener // by address
	conns     map[int]*conn        // ends that are neither closed nor torn, by number
	links     map[link]linkState   // links that were ever changed
	changed   wakeup.Broadcast     // sent at each change of a link
	dialed    int                  // number of connections so far
}

// link is one direction between two hosts.
type link struct{ from, to string }

type linkState struct {
	cut   bool
	delay time.Duration // of each byte
}

// New returns a network without listeners. Bytes arrive after the latency, on every link. In a
// bubble of testing/synctest the latency should not be 0 if some goroutine is always busy: time
// would never pass.
func New(latency time.Duration) *Network {
	return &Network{
		latency: latency, listeners: make(map[string]*listener), conns: make(map[int]*conn), links: make(map[link]linkState),
	}
}

// Listen opens a port. The address is host:port, and Dial must use the same text. Errors are
// *net.OpError: EADDRINUSE while another listener has that address, or a malformed address.
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

// Dial connects the host from to an address. Without a listener it fails at once (ECONNREFUSED).
// Dial waits while a link between the two hosts is cut, in either direction, and until the listener
// accepts. ctx ends that wait with its error, and has no effect on the connection. Errors are
// *net.OpError. The local address of the connection is an arbitrary port of from.
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
	case <-l.done:
		err = syscall.ECONNREFUSED
	case <-ctx.Done():
		err = ctx.Err()
	}
	_, _ = mine.Close(), theirs.Close() // not in use yet
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
		changed := n.changed.Next()
		n.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// connect makes both ends of a connection to the listener of an address. Without a listener l is
// nil. The ends are added to the network at once, so that they see later changes of their links.
func (n *Network) connect(from, to, address string) (mine, theirs *conn, l *listener) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if l = n.listeners[address]; l == nil {
		return nil, nil, nil
	}
	there, back := newStream(link{from, to}, n.state(link{from, to})), newStream(link{to, from}, n.state(link{to, from}))
	// The ports of IANA's range repeat, as with TCP.
	local := Addr(net.JoinHostPort(from, strconv.Itoa(49152+n.dialed%(65536-49152))))
	mine = &conn{network: n, number: 2 * n.dialed, in: back, out: there, local: local, remote: l.address}
	theirs = &conn{network: n, number: 2*n.dialed + 1, in: there, out: back, local: l.address, remote: local}
	n.dialed++
	n.conns[mine.number], n.conns[theirs.number] = mine, theirs
	return mine, theirs, l
}

// state returns the state of a link, including the latency. The caller must hold the mutex.
func (n *Network) state(l link) linkState {
	s := n.links[l]
	s.delay += n.latency
	return s
}

// Cut cuts or mends the link from one host to another. A cut link holds bytes (M2), and Dial waits.
func (n *Network) Cut(from, to string, cut bool) {
	n.change(link{from, to}, func(s *linkState) { s.cut = cut })
}

// Delay adds d to the latency of all later writes from one host to another. Bytes stay in order:
// later bytes wait for delayed bytes, even after the delay was set back to 0.
func (n *Network) Delay(from, to string, d time.Duration) {
	n.change(link{from, to}, func(s *linkState) { s.delay = d })
}

func (n *Network) change(l link, change func(*linkState)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.links[l]
	change(&s)
	n.links[l] = s
	for _, c := range n.conns {
		for _, s := range [...]*stream{c.in, c.out} { // both, since the other end may be closed
			if s.link == l {
				s.setLink(n.state(l))
			}
		}
	}
	n.changed.Send()
}

// Tear breaks all connections between two hosts, or all connections of a if b is empty. Both ends
// fail with ECONNRESET.
func (n *Network) Tear(a, b string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.conns {
		if l := c.out.link; l.from == a && (b == "" || l.to == b) || l.to == a && (b == "" || l.from == b) {
			c.in.tear()
			c.out.tear()
			delete(n.conns, c.number)
		}
	}
}

// Kill closes the listeners of a host, so that Dial is refused, and breaks its connections. The
// host may listen and dial again.
func (n *Network) Kill(host string) {
	n.mu.Lock()
	all := slices.Collect(maps.Values(n.listeners))
	n.mu.Unlock()
	for _, l := range all {
		if l.host == host {
			l.shutDown()
		}
	}
	n.Tear(host, "")
}

func (n *Network) forget(c *conn) {
	n.mu.Lock()
	delete(n.conns, c.number)
	n.mu.Unlock()
}
