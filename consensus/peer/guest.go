package peer

import (
	"context"
	"net"
	"net/netip"
	"strings"
)

// A guest is a member without an address here that has proved that it belongs to the ensemble: a
// server that is to be added, or that was removed. This member connects to the address that the
// guest names, as to any other member, for as long as that connection lasts.
//
// A guest proves itself by the secret of the ensemble, or by a certificate whose URI names the
// ensemble and the guest. Without these, it must call from and answer at a loopback address, and
// this member must accept connections on a loopback address only: then whoever could pass for a
// guest can pass for any member that is down.

// admitGuest returns whether a caller that has proved neither that it knows the secret nor that it
// is a member may be a guest: bound is that of checkCaller.
func (n *Network) admitGuest(ctx context.Context, v *visitor, from uint64, address string, bound bool, id nonce) (proven bool, err error) {
	switch {
	case bound:
		return v.enc.Ensemble != "", nil
	case isLoopback(address) && isLoopback(n.cfg.Listener.Addr().String()):
		err = n.confirm(ctx, v, from, n.guestQuestions, []string{address}, id)
		return err == nil, err
	}
	return false, nil
}

func isLoopback(addresses string) bool {
	for address := range strings.SplitSeq(addresses, addressSeparator) {
		host, _, err := net.SplitHostPort(address)
		ip, _ := netip.ParseAddr(host) // otherwise it is invalid, and no loopback address
		if err != nil || host != "localhost" && !ip.Unmap().IsLoopback() {
			return false
		}
	}
	return true
}

// invite connects to a guest, unless there is a connection.
func (n *Network) invite(id uint64, address string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.peers[id]
	switch {
	case n.closed || p != nil && p.address != "" && !p.guest: // configured meanwhile
	case p != nil && p.address == address:
	case p != nil:
		p.guest = true
		p.move(n.life, address)
	default:
		n.addPeer(id, address).guest = true
	}
}

// forgetGuest removes a guest whose connection has ended, or could not be made, and ends the
// connection on which it sends: it may say hello again.
func (p *peer) forgetGuest(ctx context.Context) {
	n := p.net
	n.mu.Lock()
	defer n.mu.Unlock()
	if !p.guest || p.ctx != ctx {
		return
	}
	p.address = ""
	if in := n.incoming[p.id]; in != nil {
		in.cancel(errDropped)
	}
}
