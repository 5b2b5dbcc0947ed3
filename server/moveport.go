package server

import (
	"cmp"
	"context"
	"fmt"
	"net"

	"github.com/gozkd/gozkd/internal/serverlist"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/internal/ports"
)

// movePorts makes the ports for clients and members follow this server's line in the committed
// members.
func (s *Server) movePorts(current serverlist.Set, version proto.Zxid) {
	self := uint64(s.cfg.MemberID)
	line, in := current.Get(self)
	if version == 0 || !in {
		return
	}
	// Without reconfig the configuration of this server decides, at its next start.
	if line.ClientPort != 0 && s.live.Load().ReconfigEnabled {
		s.port.plain.Move(line)
	}
	if s.port.peers == nil {
		return
	}
	var others []serverlist.Member
	for _, m := range current {
		if m.ID != self {
			others = append(others, m)
		}
	}
	_, wanted := s.peerListenAddresses()
	s.port.peers.Move(wanted, others)
}

// listenPeers opens the port for other members.
func (s *Server) listenPeers(ctx context.Context) (net.Listener, error) {
	if s.cfg.PeerListener != nil || s.alone() {
		return s.cfg.PeerListener, nil
	}
	configured, wanted := s.peerListenAddresses()
	m, err := ports.OpenMembers(ctx, configured, wanted, s.cfg.Logger)
	if err != nil {
		return nil, fmt.Errorf("server: peer port: %w", err)
	}
	s.port.peers = m
	return m.Listener(), nil
}

// peerListenAddresses returns where this server listens for other members by its configuration, and
// where it should listen: there, until a reconfig moves this server.
func (s *Server) peerListenAddresses() (configured, wanted string) {
	own, _ := s.peers.Local(uint64(s.cfg.MemberID))
	configured, wanted = cmp.Or(s.cfg.PeerListen, s.peerAddress()), own.PeerAddress()
	if wanted == s.peerAddress() {
		return configured, configured
	}
	return configured, ports.PeerAddress(configured, wanted)
}

// connectedAt returns the addresses of this server at which other members are connected.
func (s *Server) connectedAt() map[uint64]net.Addr {
	at := make(map[uint64]net.Addr)
	for _, link := range s.node.PeerLinks() {
		if link.Incoming {
			at[link.ID] = link.IncomingAt
		}
	}
	return at
}
