package peer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
)

// Network is a member's connections to its peers. See the package comment for what it promises.
type Network struct {
	cfg  Config
	life context.Context // of all goroutines: ends with Close
	stop context.CancelCauseFunc
	wg   sync.WaitGroup // all goroutines, and calls of SendCheckpoint

	saidOut, saidIn news // about connections that we make, and about those that we accept

	mu       sync.RWMutex // guards what follows. The Handler is never called under it
	closed   bool
	peers    map[uint64]*peer
	accepted int                  // connections
	incoming map[uint64]*incoming // who sends us frames
}

// Status says how things stand with one peer.
type Status struct {
	ID      uint64
	Address string
	// Connected: frames can be sent. Incoming: the peer is connected to us.
	Connected, Incoming bool
	// QueuedBytes wait to be written.
	QueuedBytes int
	// LastError is why our connection to the peer last ended or was not made, nil if that never happened. It stays when
	// the peer is connected again.
	LastError error
	// IncomingError is why the peer's last connection to us was refused, or given up for damaged bytes. Nil after a good one.
	IncomingError error
}

// New starts a network without peers, which accepts connections at once.
func New(cfg Config) (*Network, error) {
	if err := cfg.ensureDefaults(); err != nil {
		return nil, err
	}
	n := &Network{cfg: cfg, peers: make(map[uint64]*peer), incoming: make(map[uint64]*incoming)}
	n.life, n.stop = context.WithCancelCause(context.Background())
	n.wg.Go(n.accept) // stopped by Close with the listener, awaited by Close
	return n, nil
}

// SetPeers says which peers there are and where: the whole set. New ones are connected to, those no longer named are
// dropped, and with a changed address the old connection and checkpoints under way end. This member itself is skipped, and so is an
// empty address. It does not block; the map stays the caller's.
func (n *Network) SetPeers(addresses map[uint64]string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	for id, p := range n.peers {
		if p.address != addresses[id] {
			p.move(n.life, addresses[id])
		}
	}
	for id, address := range addresses {
		if id == n.cfg.Self || address == "" || n.peers[id] != nil {
			continue
		}
		p := newPeer(n, id)
		p.move(n.life, address)
		n.peers[id] = p
		n.wg.Go(p.run) // stopped by SetPeers or Close with p.ctx, awaited by Close
	}
}

// Drop ends the connections with a peer in both directions, and checkpoints under way to it. They are made again, if both sides accept each
// other's hello. It does not block.
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

// Send takes a frame, which from now on is the network's, to a peer. It never blocks. False: it was dropped, because there is no
// connection, too much waits already, or it is longer than MaxFrame. True does not say that it will arrive.
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

// Flush lets go out what Add took for a peer, in as few writes as it fits, on the caller's goroutine as far as the socket takes it at once. It never
// blocks.
func (n *Network) Flush(to uint64) {
	n.mu.RLock()
	p := n.peers[to]
	n.mu.RUnlock()
	if p != nil {
		p.flush()
	}
}

// Add is Send, but the frame may wait until Flush is called, or Send for the same peer.
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

// tooLong says why a frame can never be sent.
func (n *Network) tooLong(to uint64, length int) {
	err := fmt.Errorf("peer: frame of %d bytes not sent, at most %d are allowed", length, n.cfg.MaxFrame)
	n.note(to, err)
	if n.saidOut.isNew(to, "too long") {
		n.cfg.Logger.Error("frame too long", "peer", to, "error", err)
	}
}

// Status returns the state of each peer, by id.
func (n *Network) Status() []Status {
	n.mu.RLock()
	defer n.mu.RUnlock()
	var all []Status
	for id, p := range n.peers {
		if p.address == "" {
			continue
		}
		all = append(all, Status{
			ID: id, Address: p.address, Connected: p.connected, Incoming: n.incoming[id] != nil,
			QueuedBytes: int(p.queue.bytes.Load()), LastError: p.lastErr, IncomingError: p.incomingErr,
		})
	}
	slices.SortFunc(all, func(a, b Status) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// Close closes the listener and all connections and awaits all goroutines, with what they have called of the Handler, and
// all calls of SendCheckpoint. Later calls do nothing. Its error is the listener's.
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

// note keeps an error of our connection to a peer for Status.
func (n *Network) note(id uint64, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if p := n.peers[id]; p != nil {
		p.lastErr = err
	}
}

// noteIncoming does the same for the peer's connection to us.
func (n *Network) noteIncoming(id uint64, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if p := n.peers[id]; p != nil {
		p.incomingErr = err
	}
}
