package peer

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gozkd/gozkd/internal/certhost"
	"github.com/gozkd/gozkd/internal/fair"
	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/internal/standstill"
)

// Network holds the connections of a member to its peers. The package comment lists its invariants.
type Network struct {
	cfg  Config
	life context.Context // of all goroutines: ends with Close
	stop context.CancelCauseFunc
	wg   sync.WaitGroup // all goroutines, and calls of SendCheckpoint

	loggedOut, loggedIn logOnce // for dialed and for accepted connections
	refused             refusalCounts
	refusalLog          *fair.Rate // by Refusal.String: a stranger could say something new each time
	lobby               fair.Places[*visitor]
	handshakes          *fair.Gauge // of callers, at a time, by host
	guestQuestions      *fair.Gauge // like peer.questions, for callers without an address here
	encryption          atomic.Pointer[encryption]
	standstill          *standstill.Watch
	linksChanged        chan struct{} // capacity 1: a connection was made, or an address or the mode of TLS has changed
	resolver            certhost.Resolver

	mu       sync.RWMutex // guards the fields below; never held while the Handler is called
	closed   bool
	peers    map[uint64]*peer
	further  map[uint64][]string  // see SetFurther
	accepted int                  // connections
	incoming map[uint64]*incoming // by peer
	dialing  map[nonce]uint64     // the connections that this member makes, with the other member
}

// Status is the state of the connections with a peer.
type Status struct {
	ID      uint64
	Address string
	// Connected: frames can be sent. Incoming: the peer can send frames.
	Connected, Incoming bool
	// IncomingAt is the address of this member at which the peer is connected; nil: not Incoming.
	IncomingAt net.Addr
	// TLS and IncomingTLS are the versions of TLS of these connections, empty if they are plain.
	TLS, IncomingTLS string
	// QueuedBytes is the number of bytes that wait to be written.
	QueuedBytes int
	// LastError is why the connection to the peer last ended or could not be made, nil if that
	// never happened. LastError is kept after a reconnect.
	LastError error
	// IncomingError is why the last connection from the peer was refused, or closed because of
	// damaged bytes. Nil after a good connection.
	IncomingError error
}

// New starts a network with Config.Peers, which accepts connections at once.
func New(cfg Config) (*Network, error) {
	if err := cfg.ensureDefaults(); err != nil {
		return nil, err
	}
	n := newNetwork(cfg)
	n.SetPeers(cfg.Peers) // first, so that these can be asked whether a connection is their own
	n.wg.Go(n.accept)     // stopped by Close with the listener, awaited by Close
	// These are stopped by Close with n.life, and awaited by Close.
	n.wg.Go(n.moveLinks)
	n.wg.Go(func() { n.standstill.Run(n.life) })
	return n, nil
}

// newNetwork returns a network that accepts nothing yet.
func newNetwork(cfg Config) *Network {
	n := &Network{
		cfg: cfg, peers: make(map[uint64]*peer), incoming: make(map[uint64]*incoming), dialing: make(map[nonce]uint64),
		refusalLog: fair.NewRate(refusalLogInterval, 1, 2*int(refusals)),
		standstill: standstill.New(helloTimeout),
		handshakes: fair.NewGauge(maxHandshakesPerHost, maxHandshakes), guestQuestions: fair.NewGauge(maxQuestionsPerHost, maxQuestions),
		linksChanged: make(chan struct{}, 1), resolver: net.DefaultResolver,
	}
	n.setEncryption(cfg.TLS)
	n.life, n.stop = context.WithCancelCause(context.Background())
	return n
}

// SetPeers replaces the set of peers and their addresses. New peers are connected, missing peers
// are removed, except for guests. A peer whose address changes stays connected, and is still
// reached and asked at its former address if it does not answer at the new one, until it is
// connected there. This member itself and empty addresses are skipped. SetPeers does not block, and
// does not retain the map.
func (n *Network) SetPeers(addresses map[uint64]string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	for id, p := range n.peers {
		switch address := addresses[id]; {
		case p.guest && address == "":
		case p.address == "" || address == "":
			p.former = ""
			p.move(n.life, address)
			p.guest = false
		case p.address != address:
			p.readdress(n.life, address)
			fallthrough
		default:
			p.guest = false
		}
	}
	for id, address := range addresses {
		if id == n.cfg.Self || address == "" || n.peers[id] != nil {
			continue
		}
		n.addPeer(id, address)
	}
}

// SetFurther replaces the further addresses of the peers, and retains the map. After a second
// without a connection a peer is tried there, too, in turn; and a peer that does not answer
// elsewhere is asked there whether it is making a connection. Connections and attempts continue.
func (n *Network) SetFurther(addresses map[uint64][]string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.further = addresses
}

// Drop closes the connections with a peer in both directions, and ends running checkpoints. Both
// sides connect again if they accept each other's hello. Drop does not block.
func (n *Network) Drop(id uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if in := n.incoming[id]; in != nil {
		in.cancel(errDropped)
	}
	if p := n.peers[id]; p != nil && p.address != "" && !n.closed {
		p.move(n.life, p.address)
	}
}

// Send queues a frame for a peer, retains it, and never blocks. Send returns false if the frame was
// dropped: there is no connection, the queue is full, or the frame is longer than MaxFrame. A
// queued frame may still be lost.
func (n *Network) Send(to uint64, frame []byte) bool {
	if !n.Add(to, frame) {
		return false
	}
	n.mu.RLock()
	defer n.mu.RUnlock()
	if p := n.peers[to]; p != nil {
		p.queue.signal()
	}
	return true
}

// Flush writes the frames that Add has queued for a peer, in as few writes as possible. As much as
// the socket accepts at once is written on the goroutine of the caller. Flush never blocks.
func (n *Network) Flush(to uint64) {
	n.mu.RLock()
	p := n.peers[to]
	n.mu.RUnlock()
	if p != nil {
		p.flush()
	}
}

// Add is like Send, but the frame may wait for the next Flush or Send for the same peer.
func (n *Network) Add(to uint64, frame []byte) bool {
	n.mu.RLock()
	p := n.peers[to]
	n.mu.RUnlock()
	switch {
	case p == nil:
		return false
	case len(frame) > n.cfg.MaxFrame:
		n.tooLong(to, len(frame))
		return false
	}
	return p.queue.put(frame)
}

func (n *Network) tooLong(to uint64, length int) {
	err := fmt.Errorf("peer: send frame: %d bytes, the maximum is %d", length, n.cfg.MaxFrame)
	n.note(to, err)
	if n.loggedOut.isNew(to, "too long") {
		n.cfg.Logger.Error("frame too long", "peer", memberid.Number(to), "error", err)
	}
}

// Status returns the state of each peer, sorted by id.
func (n *Network) Status() []Status {
	n.mu.RLock()
	defer n.mu.RUnlock()
	var all []Status
	for _, id := range slices.Sorted(maps.Keys(n.peers)) {
		p := n.peers[id]
		if p.address == "" {
			continue
		}
		s := Status{
			ID: id, Address: p.address, Connected: p.connected, TLS: p.tls,
			QueuedBytes: int(p.queue.bytes.Load()), LastError: p.lastErr, IncomingError: p.incomingErr,
		}
		if in := n.incoming[id]; in != nil {
			s.Incoming, s.IncomingAt, s.IncomingTLS = true, in.at, in.tls
		}
		all = append(all, s)
	}
	return all
}

// Close closes the listener and all connections, and waits for all goroutines, calls of the
// Handler, and calls of SendCheckpoint. Later calls of other methods do nothing. The error is that
// of the listener.
func (n *Network) Close() error {
	n.mu.Lock()
	first := !n.closed
	n.closed = true
	n.mu.Unlock()
	var err error
	if first {
		n.stop(ErrClosed)
		err = n.cfg.Listener.Close()
	}
	n.wg.Wait()
	return err
}

// note records an error of the connection to a peer for Status.
func (n *Network) note(id uint64, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if p := n.peers[id]; p != nil {
		p.lastErr = err
	}
}

// noteIncoming records an error of the connection from a peer for Status.
func (n *Network) noteIncoming(id uint64, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if p := n.peers[id]; p != nil {
		p.incomingErr = err
	}
}
