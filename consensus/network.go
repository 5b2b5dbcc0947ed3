package consensus

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"go.etcd.io/raft/v3"

	"github.com/gozkd/gozkd/consensus/internal/core"
	"github.com/gozkd/gozkd/consensus/peer"
	"github.com/gozkd/gozkd/internal/memberid"
)

// peerNetwork is the connections of a node to the other members.
//
// Members of another ensemble are refused in the hello (Accept). A member without state, however,
// has no number to compare: it talks with every member, and learns only later which ensemble it
// belongs to. From then on it must ignore members of another ensemble on existing connections. That
// happens after a restore: an emptied server is let in by the new ensemble while a server of the
// old ensemble still runs.
//
// The loop, the network's goroutines and callers of Node's methods use a peerNetwork: what they
// share is atomic, or guarded by mu.
type peerNetwork struct {
	cfg         *Config
	inbox       *inbox
	wakeups     *wakeups
	checkpoints *checkpoints
	drive       func()      // Node.drive
	urgent      atomic.Bool // messages were received that the loop must handle now

	cluster atomic.Uint64                  // identifies this member's ensemble; 0: not known yet
	levels  atomic.Pointer[core.LevelInfo] // of this member
	// incarnations is core.AppendIncarnations of the present state.
	incarnations atomic.Pointer[[]byte]
	noted        uint64                 // guarded by turns: counts the incarnations in incarnations
	own          atomic.Pointer[string] // Config.PeerAddress, or its successor

	network   atomic.Pointer[peer.Network] // nil: not connected; never changes again
	mu        sync.Mutex
	addresses map[uint64]string   // by member
	further   map[uint64][]string // see peer.SetFurther
	hellos    map[uint64]hello    // by member: its last accepted hello
	tls       *PeerTLS            // replaces that of the configuration; nil: that counts

	unsent []uint64 // guarded by turns: members that flush has messages for
}

type hello struct {
	cluster uint64 // the ensemble; 0: not known yet
	levels  core.LevelInfo
}

func (p *peerNetwork) connect() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	cfg := peer.Config{
		Self: p.cfg.ID, Peers: p.addresses, Listener: p.cfg.PeerListener, Dial: p.cfg.PeerDial, Handler: p,
		Guest: p.guest, Arriving: p.arriving, AddressPatience: p.cfg.AddressPatience,
		Logger: p.cfg.Logger.Named("peer"), TLS: p.cfg.PeerTLS, Secret: p.cfg.PeerSecret, SecretOptional: p.cfg.PeerSecretOptional, MaxIncoming: p.cfg.PeerConns,
	}
	if p.tls != nil {
		cfg.TLS = *p.tls
	}
	network, err := peer.New(cfg)
	if err != nil {
		return fmt.Errorf("consensus: %w", err)
	}
	network.SetFurther(p.further)
	p.network.Store(network)
	return nil
}

func (p *peerNetwork) get() *peer.Network { return p.network.Load() }

func (p *peerNetwork) setAddresses(addresses map[uint64]string, further map[uint64][]string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.addresses, p.further = addresses, further
	if network := p.get(); network != nil {
		network.SetFurther(further)
		network.SetPeers(addresses)
	}
}

func (p *peerNetwork) setTLS(t PeerTLS) error {
	if err := t.Check(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tls = &t
	if network := p.get(); network != nil {
		return network.SetTLS(t)
	}
	return nil
}

// setIncarnations publishes the incarnations that this member knows, if any is new.
func (p *peerNetwork) setIncarnations(c *core.Core) {
	if n := c.Incarnations(); n != p.noted || p.incarnations.Load() == nil {
		p.noted = n
		b := c.AppendIncarnations(nil)
		p.incarnations.Store(&b)
	}
}

// foreign reports whether a member belongs to another ensemble than ours. A member that knows none
// may become part of ours.
func (p *peerNetwork) foreign(member, ours uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return core.ClustersDiffer(p.hellos[member].cluster, ours)
}

// joinCluster is called when this member's ensemble is known. Connections to members of other
// ensembles end; both sides log the reason when the next hello is refused.
func (p *peerNetwork) joinCluster(cluster uint64) {
	p.cluster.Store(cluster)
	p.drop(func(id uint64, theirs hello) bool {
		if !core.ClustersDiffer(theirs.cluster, cluster) {
			return false
		}
		p.cfg.Logger.Warn("disconnected a member of another ensemble: its messages are dropped",
			"member", memberid.Number(id))
		return true
	})
}

// setLevels is called when what this member tells others about levels may have changed. Members
// that must know it, or that do not support the active level, exchange hellos again.
func (p *peerNetwork) setLevels(ours core.LevelInfo) {
	before := *p.levels.Load()
	if ours == before {
		return
	}
	p.levels.Store(new(ours)) // a copy, so that ours is not allocated at each call
	p.drop(func(id uint64, theirs hello) bool {
		return ours.Ready != before.Ready || core.CheckPeers(p.cfg.ID, ours, id, theirs.levels) != nil
	})
}

// drop ends the connections with the members f selects. Those that accept each other reconnect.
func (p *peerNetwork) drop(f func(id uint64, theirs hello) bool) {
	network := p.get()
	if network == nil {
		return
	}
	p.mu.Lock()
	known := maps.Clone(p.hellos)
	p.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(known)) {
		if f(id, known[id]) {
			network.Drop(id)
		}
	}
}

// send queues a message of the core until flush. Raft and the streams recover from a message that
// is dropped on the way.
func (p *peerNetwork) send(network *peer.Network, m *core.Message) {
	frame, err := m.Encode()
	if err != nil {
		p.cfg.Logger.Error("message not sent", "to", memberid.Number(m.To), "error", err)
		return
	}
	if network.Add(m.To, frame) && !slices.Contains(p.unsent, m.To) {
		p.unsent = append(p.unsent, m.To)
	}
}

// flush lets the queued messages go, so that all messages of a turn to a member are one write and
// wake the member once.
func (p *peerNetwork) flush() {
	if len(p.unsent) == 0 {
		return
	}
	network := p.get()
	for _, to := range p.unsent {
		network.Flush(to)
	}
	p.unsent = p.unsent[:0]
}

// SetMembers sets the addresses of the other members, host:port by member, and Config.PeerAddress
// if this member is among them, and further addresses of them. They are used as peer.SetPeers and
// peer.SetFurther say. SetMembers may be called at any time, and retains further.
func (n *Node) SetMembers(addresses map[uint64]string, further map[uint64][]string) {
	addresses = maps.Clone(addresses)
	if own := addresses[n.cfg.ID]; own != "" {
		n.network.own.Store(&own)
	}
	delete(addresses, n.cfg.ID)
	n.network.setAddresses(addresses, further)
	ids := slices.Collect(maps.Keys(addresses))
	n.inbox.events.put(coreCall(func(c *core.Core) { c.Admission.SetPeers(ids) }))
}

// SetMaxLevel changes Config.MaxLevel; 0: no limit. The connections to other members are made anew,
// so that they are told.
func (n *Node) SetMaxLevel(limit Level) {
	n.inbox.events.put(coreCall(func(c *core.Core) { c.Levels.SetLimit(limit) }))
}

// SetPeerTLS changes Config.PeerTLS while the node runs; see peer.Network.SetTLS.
func (n *Node) SetPeerTLS(t PeerTLS) error {
	if err := n.network.setTLS(t); err != nil {
		return fmt.Errorf("consensus: %w", err)
	}
	return nil
}

// SetTarget sets the membership that the ensemble is to reach. All members must be given the same
// target, as part of the state that they apply; the leader carries it out.
func (n *Node) SetTarget(t Target) {
	n.inbox.events.put(coreCall(func(c *core.Core) { c.SetTarget(t) }))
}

// Send sends a message to another member if the member is connected now. The message may be lost,
// and arrives at most once.
func (n *Node) Send(to uint64, payload []byte) {
	if to == n.cfg.ID {
		n.cfg.OnMessage(to, payload)
		return
	}
	if network := n.network.get(); network != nil && to != raft.None {
		network.Send(to, append([]byte{core.FrameApplication}, payload...))
	}
}

// Connected returns the other members that can be sent messages now, sorted.
func (n *Node) Connected() (ids []uint64) {
	for _, p := range n.PeerLinks() {
		if p.Connected {
			ids = append(ids, p.ID)
		}
	}
	return ids
}

// PeerLinks returns the connections with the other members, sorted by member.
func (n *Node) PeerLinks() []PeerLink {
	if network := n.network.get(); network != nil {
		return network.Status()
	}
	return nil
}

// PeersRefused returns how many connections to the peer port were refused, by reason.
func (n *Node) PeersRefused() map[string]int64 {
	if network := n.network.get(); network != nil {
		return network.Refused()
	}
	return nil
}

// HandOver passes leadership, if this member leads, to the voter with the number to (0: any voter),
// provided that it can take over, and returns when that has succeeded or failed, or when ctx ends.
func (n *Node) HandOver(ctx context.Context, to uint64) {
	if !n.Status().Leading || n.cfg.PeerListener == nil {
		return
	}
	done := make(chan struct{})
	n.inbox.events.put(nodeCall(func(n *Node) error {
		n.loop.HandOver(to, func() { close(done) })
		return nil
	}))
	select {
	case <-done:
	case <-n.loopEnded:
	case <-ctx.Done():
	}
}

// Hello returns the ensemble that this member belongs to, its levels, the incarnations that it
// knows, and its address. Earlier versions ignore what they do not know.
func (p *peerNetwork) Hello() []byte {
	b := append(p.levels.Load().Append(binary.AppendUvarint(nil, p.cluster.Load())), *p.incarnations.Load()...)
	own := *p.own.Load()
	return append(binary.AppendUvarint(b, uint64(len(own))), own...)
}

// guest returns the address that a hello names, if its sender can be a member.
func (p *peerNetwork) guest(from uint64, contents []byte) string {
	r := core.Uvarints{Rest: contents}
	r.Next()
	core.DecodeLevelInfo(&r)
	core.ReadIncarnation(&r, from)
	if r.Bad || from > core.MaxMemberID || len(r.Rest) == 0 || r.Next() != uint64(len(r.Rest)) {
		return ""
	}
	return string(r.Rest)
}

// Accept refuses those that are no members here, the members of other ensembles, and those that do
// not support the active level. A member that knows no ensemble yet may become part of ours.
func (p *peerNetwork) Accept(from uint64, contents []byte, known bool) error {
	r := core.Uvarints{Rest: contents}
	theirs, ours := hello{r.Next(), core.DecodeLevelInfo(&r)}, p.cluster.Load()
	incarnation := core.ReadIncarnation(&r, p.cfg.ID)
	switch {
	case r.Bad:
		return errors.New("malformed hello")
	case !known:
		return fmt.Errorf("member %d is not configured on member %d: add it by reconfig or, if that is off, by its line on all servers. Before that it can follow the ensemble only if all members have a secret, gozkd.peer.secretFile, or certificates that name them",
			memberid.Number(from), memberid.Number(p.cfg.ID))
	case core.ClustersDiffer(theirs.cluster, ours):
		return fmt.Errorf("member %d belongs to ensemble %016x, this is a member of ensemble %016x: "+
			"check the server lines of both; after a restore, empty the directory of the other servers, except for "+
			"myid; if one was founded while the server with the data was away, stop it: docs/guide/operate.md#a-majority-without-data",
			memberid.Number(from), theirs.cluster, ours)
	}
	if err := core.CheckPeers(p.cfg.ID, *p.levels.Load(), from, theirs.levels); err != nil {
		return err
	}
	p.mu.Lock()
	p.hellos[from] = theirs
	p.mu.Unlock()
	// The loop takes these before the messages of this connection.
	p.inbox.events.put(coreCall(func(c *core.Core) {
		c.Levels.SetPeer(from, theirs.levels)
		c.Membership.SetPeerState(from, theirs.cluster != 0)
		c.SeeOwnIncarnation(incarnation)
	}))
	return nil
}

func (p *peerNetwork) Receive(from uint64, frame []byte) {
	if p.foreign(from, p.cluster.Load()) {
		return
	}
	if len(frame) > 0 && frame[0] == core.FrameApplication {
		p.cfg.OnMessage(from, frame[1:])
		return
	}
	m, err := core.DecodeMessage(p.cfg.ID, from, frame)
	if err != nil {
		p.cfg.Logger.Error("message dropped", "from", memberid.Number(from), "error", err)
		return
	}
	p.inbox.events.add(messageReceived{&m})
	if !p.wakeups.mayWait(&m) {
		p.urgent.Store(true)
	}
}

// arriving tells the core that a part of a long message of a member has come.
func (p *peerNetwork) arriving(from uint64) {
	if !p.foreign(from, p.cluster.Load()) {
		p.inbox.events.put(nodeCall(func(n *Node) error { return n.core.Arriving(from) }))
	}
}

// Drained makes the loop handle the messages that Receive has taken.
func (p *peerNetwork) Drained() {
	if p.urgent.Load() && p.urgent.Swap(false) {
		p.drive()
	}
}

func (p *peerNetwork) ReceiveCheckpoint(from uint64, r io.ReadCloser) error {
	return p.checkpoints.receive(from, r)
}

func (p *peerNetwork) Up(id uint64) {
	p.inbox.events.put(coreCall(func(c *core.Core) { c.Reachable(id) }))
}

func (p *peerNetwork) Down(id uint64, gone bool) {
	p.inbox.events.put(coreCall(func(c *core.Core) { c.Unreachable(id, gone) }))
}
