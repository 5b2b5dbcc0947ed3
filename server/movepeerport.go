package server

import (
	"context"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/internal/serverlist"
	"github.com/gozkd/gozkd/proto"
)

// Bounds of the time after which the server looks again whether it can close its former port for
// other members. It tries again to open the new one after leastMoveCheck to mostMoveRetry.
const leastMoveCheck, mostMoveCheck = 50 * time.Millisecond, 5 * time.Second

// peerMove is how an address for other members that a reconfig gives to this server reaches the
// goroutine that listens there.
type peerMove struct {
	place   atomic.Pointer[peerPlace] // nil: not known
	changed chan struct{}             // capacity 1: place was stored

	// Owned by followPeerAddress once that runs.
	opened string         // the address on which this server listens: the configured one, or a listen of place
	at     []net.Listener // for opened; all others are former ones
}

// peerPlace is where the committed members are.
type peerPlace struct {
	listen string              // this server's own address
	others []serverlist.Member // as committed
}

func (m *peerMove) init() { m.changed = make(chan struct{}, 1) }

// wantedPeerAddress returns where this server should listen for other members: on the configured
// address, until a reconfig moves this server. An unspecified host remains one.
func (s *Server) wantedPeerAddress() string {
	own, _ := s.peers.Local(uint64(s.cfg.MemberID))
	configured, wanted := s.configuredPeerAddress(), own.PeerAddress()
	if wanted == s.peerAddress() {
		return configured
	}
	host, _, err := net.SplitHostPort(configured)
	_, port, wantedErr := net.SplitHostPort(wanted)
	if err != nil || wantedErr != nil || host != "" && host != unspecifiedHost && host != "::" { // several addresses are an error here
		return wanted
	}
	return net.JoinHostPort(host, port)
}

// notePeerAddress makes the port for other members follow the committed members. It is called by
// retarget.
func (s *Server) notePeerAddress(current serverlist.Set, version proto.Zxid) {
	self := uint64(s.cfg.MemberID)
	if _, in := current.Get(self); version == 0 || !in {
		return
	}
	place := peerPlace{listen: s.wantedPeerAddress()}
	for _, m := range current {
		if m.ID != self {
			place.others = append(place.others, m)
		}
	}
	s.port.peerMove.place.Store(&place)
	select {
	case s.port.peerMove.changed <- struct{}{}:
	default:
	}
}

// followPeerAddress moves the port for other members to the address that the committed members have
// for this server. The former port stays open until all of them are connected at the new one: a
// member that does not know of the move yet needs it, to learn of the move and to ask whether a
// connection is this server's own. But the address of another member is given up at once.
func (s *Server) followPeerAddress(ctx context.Context) {
	var failed, waited time.Duration // the last waits after a failure, and for the others
	var again <-chan time.Time
	m := &s.port.peerMove
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.changed:
			failed, waited = 0, 0
		case <-again:
		}
		again = nil
		place := m.place.Load()
		err := s.openPeerPort(ctx, place.listen)
		if ctx.Err() != nil {
			return
		}
		s.closePeerPorts(ctx, err == nil && place.connected(s.node.PeerLinks(), m.at), place)
		switch {
		case err != nil:
			if failed = min(max(2*failed, leastMoveCheck), mostMoveRetry); failed == leastMoveCheck || failed > leastMoveRetry {
				s.cfg.Logger.Error("this server cannot listen on the address for other servers that a reconfig gave it, so its former one stays in use, unless it is another server's now: free the new address, or change it by another reconfig",
					"address", place.listen, "error", err, "retry_ms", failed.Milliseconds())
			}
			again, waited = time.After(failed), 0
		case len(s.port.peers.all()) > len(m.at):
			waited = min(max(2*waited, leastMoveCheck), mostMoveCheck)
			again, failed = time.After(waited), 0
		}
	}
}

// openPeerPort listens for other members on an address, and closes nothing.
func (s *Server) openPeerPort(ctx context.Context, address string) (err error) {
	m := &s.port.peerMove
	if address == m.opened {
		return nil
	}
	m.opened = ""
	if m.at, err = s.port.peers.open(ctx, address, s.cfg.Logger); err != nil {
		return err
	}
	m.opened = address
	s.cfg.Logger.Info("the port for other servers has moved, as a reconfig says; the former one closes when all servers are connected at the new one", "address", address)
	return nil
}

// closePeerPorts closes the former ports for other members if all is true, otherwise those whose
// address place gives to another member.
func (s *Server) closePeerPorts(ctx context.Context, all bool, place *peerPlace) {
	for _, l := range s.port.peers.all() {
		if slices.Contains(s.port.peerMove.at, l) || !all && !place.givesAway(ctx, l) {
			continue
		}
		_ = s.port.peers.remove(l) // an error would say that it was closed before
		s.cfg.Logger.Info("the former port for other servers is closed", "address", l.Addr().String())
	}
}

// connected reports whether all other members are connected at these listeners.
func (p *peerPlace) connected(links []consensus.PeerLink, at []net.Listener) bool {
	for _, m := range p.others {
		if !slices.ContainsFunc(links, func(link consensus.PeerLink) bool {
			return link.ID == m.ID && link.Incoming && slices.ContainsFunc(at, func(l net.Listener) bool { return listensAt(l, link.IncomingAt) })
		}) {
			return false
		}
	}
	return true
}

// givesAway reports whether a listener has an address of this machine that is another member's.
func (p *peerPlace) givesAway(ctx context.Context, l net.Listener) bool {
	for _, m := range p.others {
		for address := range strings.SplitSeq(m.PeerAddress(), serverlist.AddressSeparator) {
			if a, err := resolve(ctx, address); err == nil && listensAt(l, a) && onThisMachine(a.IP) {
				return true
			}
		}
	}
	return false
}

// onThisMachine reports whether this machine has an address.
func onThisMachine(ip net.IP) bool {
	own, err := net.InterfaceAddrs()
	return err == nil && (ip.IsLoopback() || slices.ContainsFunc(own, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.IP.Equal(ip)
	}))
}
