package consensus

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"go.etcd.io/raft/v3"

	"github.com/gozkd/gozkd/consensus/peer"
)

// What a Node says to other members, and hears from them.

// connect begins to talk with the other members.
func (n *Node) connect() (err error) {
	if n.cfg.PeerListener == nil {
		return nil
	}
	n.networkMu.Lock()
	defer n.networkMu.Unlock()
	n.network, err = peer.New(peer.Config{
		Self: n.cfg.ID, Listener: n.cfg.PeerListener, Dial: n.cfg.PeerDial, Handler: peers{n}, Logger: n.cfg.Logger.Named("peer"),
	})
	if err != nil {
		return fmt.Errorf("consensus: %w", err)
	}
	n.network.SetPeers(n.addresses)
	return nil
}

func (n *Node) disconnect() error {
	if n.network == nil {
		return nil
	}
	return n.network.Close()
}

// SetMembers says where the other members are: host:port by member. It may be called at any time.
func (n *Node) SetMembers(addresses map[uint64]string) {
	addresses = maps.Clone(addresses)
	delete(addresses, n.cfg.ID)
	n.networkMu.Lock()
	n.addresses = addresses
	if n.network != nil {
		n.network.SetPeers(addresses)
	}
	n.networkMu.Unlock()
	n.inbox.put(input{peers: slices.AppendSeq([]uint64{}, maps.Keys(addresses))})
}

// SetTarget says which members there shall be. All members must be told the same, as part of the state that they apply; the
// leader sees to it.
func (n *Node) SetTarget(t Target) { n.inbox.put(input{target: &t}) }

// Send gives a message to another member, if it can be reached now: it may be lost, and comes at most once.
func (n *Node) Send(to uint64, payload []byte) {
	if to == n.cfg.ID {
		n.cfg.OnMessage(to, payload)
		return
	}
	n.networkMu.Lock()
	network := n.network
	n.networkMu.Unlock()
	if network != nil && to != raft.None {
		network.Send(to, append([]byte{frameReport}, payload...))
	}
}

// HandOver passes the lead on, if this member has it and another voter can take it, and returns when that is done, has
// failed, or ctx ends.
func (n *Node) HandOver(ctx context.Context) {
	if !n.Status().Leading || n.cfg.PeerListener == nil {
		return
	}
	done := make(chan struct{})
	n.inbox.put(input{handOver: done})
	select {
	case <-done:
	case <-ctx.Done():
	}
}

func (n *Node) tickHandOver() {
	if n.handOver == nil {
		return
	}
	n.handOverTicks++
	c := n.core
	if c.role == raft.StateLeader && n.handOverTicks <= 2*electionTicks && c.handOver(c.conf.GetVoters()) {
		return
	}
	close(n.handOver)
	n.handOver, n.handOverTicks = nil, 0
}

// send gives a message of the core to the network, for flushMessages. What is dropped there is found out by raft and by the streams.
func (n *Node) send(m message) {
	frame, err := m.encode()
	if err != nil {
		n.cfg.Logger.Error("message not sent", "to", m.to, "error", err)
		return
	}
	if n.network != nil && n.network.Add(m.to, frame) && !slices.Contains(n.unsent, m.to) {
		n.unsent = append(n.unsent, m.to)
	}
}

// flushMessages lets go out what was given to send. So what one turn of the loop has for a member is one write, and wakes it once.
func (n *Node) flushMessages() {
	for _, to := range n.unsent {
		n.network.Flush(to)
	}
	n.unsent = n.unsent[:0]
}

// peers is the Node as its network sees it.
type peers struct{ n *Node }

// Hello says to which ensemble this member belongs.
func (p peers) Hello() []byte { return binary.AppendUvarint(nil, p.n.cluster.Load()) }

// Accept refuses the members of other ensembles. Who knows of none yet may be of this one.
func (p peers) Accept(from uint64, hello []byte) error {
	r := uvarints{b: hello}
	theirs, ours := r.next(), p.n.cluster.Load()
	switch {
	case r.bad:
		return errors.New("malformed hello")
	case apart(theirs, ours):
		return fmt.Errorf("member %d belongs to ensemble %016x, this is a member of ensemble %016x: check the server lines of both", from, theirs, ours)
	}
	p.n.clusters.note(from, theirs)
	return nil
}

func (p peers) Receive(from uint64, frame []byte) {
	if p.n.clusters.foreign(from, p.n.cluster.Load()) {
		return
	}
	if len(frame) > 0 && frame[0] == frameReport {
		p.n.cfg.OnMessage(from, frame[1:])
		return
	}
	m, err := decodeMessage(p.n.cfg.ID, from, frame)
	if err != nil {
		p.n.cfg.Logger.Error("message dropped", "from", from, "error", err)
		return
	}
	if m.forward != nil {
		p.n.request(input{message: &m})
		return
	}
	p.n.inbox.put(input{message: &m})
}

func (p peers) ReceiveCheckpoint(from uint64, r io.Reader) error {
	return p.n.receiveCheckpoint(from, r)
}

func (p peers) Up(id uint64) { p.n.inbox.put(input{connected: id}) }

func (p peers) Down(id uint64, gone bool) { p.n.inbox.put(input{disconnected: id, gone: gone}) }
