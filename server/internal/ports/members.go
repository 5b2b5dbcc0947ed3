package ports

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/internal/accept"
	"github.com/gozkd/gozkd/internal/neterr"
	"github.com/gozkd/gozkd/internal/serverlist"
	"github.com/gozkd/gozkd/internal/wakeup"
)

// Bounds of the time after which the server looks again whether it can close its former port for
// other members. It tries again to open the new one after leastMoveCheck to mostMoveRetry.
const leastMoveCheck, mostMoveCheck = 50 * time.Millisecond, 5 * time.Second

// Members is the port for other members: the listeners for the address of this server's line, and
// former ones, for members that do not know of a move yet. It follows the committed members.
type Members struct {
	logger  hclog.Logger
	joined  *accept.Joined
	place   atomic.Pointer[place] // nil: not known
	changed chan struct{}         // capacity 1: place was stored

	// Owned by Follow once that runs.
	opened string         // the address on which this server listens: the first one, or a listen of place
	at     []net.Listener // for opened; all others are former ones
}

// place is where the committed members are.
type place struct {
	listen string              // this server's own address
	others []serverlist.Member // as committed
}

// OpenMembers opens the port: on wanted, the address that the committed members have for it, and on
// configured, the addresses in this server's configuration. Follow closes the latter.
func OpenMembers(ctx context.Context, configured, wanted string, logger hclog.Logger) (m *Members, err error) {
	m = &Members{logger: logger, joined: accept.NewJoined(serverlist.AddressSeparator), changed: make(chan struct{}, 1)}
	var moved error
	if wanted != configured {
		if m.at, moved = m.open(ctx, wanted); moved == nil {
			for address := range strings.SplitSeq(configured, serverlist.AddressSeparator) {
				_, _ = m.listen(ctx, address) // not needed if somebody else has it now
			}
			m.opened = wanted
			return m, nil
		}
		moved = fmt.Errorf("the address that a reconfig gave it: %w", moved)
	}
	if m.at, err = m.open(ctx, configured); err != nil {
		return nil, errors.Join(err, moved, m.joined.Close())
	}
	m.opened = configured
	return m, nil
}

// Listener returns the listener that accepts the connections of all.
func (m *Members) Listener() net.Listener { return m.joined }

// Move makes Follow move the port to that address. others are the committed other members.
func (m *Members) Move(listen string, others []serverlist.Member) {
	m.place.Store(&place{listen, others})
	wakeup.Send(m.changed)
}

// Follow moves the port until ctx ends. The former port stays open until all other members are
// connected at the new one: a member that does not know of the move yet needs it, to learn of the
// move and to ask whether a connection is this server's own. But the address of another member is
// given up at once. connected returns where, of this server's addresses, each member is connected.
// Follow is called once.
func (m *Members) Follow(ctx context.Context, connected func() map[uint64]net.Addr) {
	var failed, waited time.Duration // the last waits after a failure, and for the others
	var again <-chan time.Time
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
		err := m.moveTo(ctx, place.listen)
		if ctx.Err() != nil {
			return
		}
		m.closeFormer(ctx, err == nil && place.connected(connected(), m.at), place)
		switch {
		case err != nil:
			failed = min(max(2*failed, leastMoveCheck), mostMoveRetry)
			if failed == leastMoveCheck || failed > leastMoveRetry {
				m.logger.Error("this server cannot listen on the address for other servers that a reconfig gave it, "+
					"so its former one stays in use, unless it is another server's now: free the new address, "+
					"or change it by another reconfig",
					"address", place.listen, "error", err, "retry_ms", failed.Milliseconds())
			}
			again, waited = time.After(failed), 0
		case len(m.joined.All()) > len(m.at):
			waited = min(max(2*waited, leastMoveCheck), mostMoveCheck)
			again, failed = time.After(waited), 0
		}
	}
}

// moveTo listens on an address, and closes nothing.
func (m *Members) moveTo(ctx context.Context, address string) (err error) {
	if address == m.opened {
		return nil
	}
	m.opened = ""
	if m.at, err = m.open(ctx, address); err != nil {
		return err
	}
	m.opened = address
	m.logger.Info("the port for other servers has moved, as a reconfig says; the former one closes when all "+
		"servers are connected at the new one", "address", address)
	return nil
}

// closeFormer closes the former listeners, all or those whose address p gives to another member.
func (m *Members) closeFormer(ctx context.Context, all bool, p *place) {
	for _, l := range m.joined.All() {
		if slices.Contains(m.at, l) || !all && !p.givesAway(ctx, l) {
			continue
		}
		_ = m.joined.Remove(l) // an error would say that it was closed before
		m.logger.Info("the former port for other servers is closed", "address", l.Addr().String())
	}
}

// PeerAddress returns where a server listens for other members whose line has the address wanted:
// there, but an unspecified host in the configured address remains one.
func PeerAddress(configured, wanted string) string {
	host, _, err := net.SplitHostPort(configured)
	_, port, wantedErr := net.SplitHostPort(wanted)
	// Several addresses are an error here.
	if err != nil || wantedErr != nil || !serverlist.AllAddresses(host) {
		return wanted
	}
	return net.JoinHostPort(host, port)
}

func (p *place) connected(links map[uint64]net.Addr, at []net.Listener) bool {
	return !slices.ContainsFunc(p.others, func(m serverlist.Member) bool {
		return !slices.ContainsFunc(at, func(l net.Listener) bool { return listensAt(l, links[m.ID]) })
	})
}

// givesAway reports whether a listener has an address of this machine that is another member's.
func (p *place) givesAway(ctx context.Context, l net.Listener) bool {
	for _, m := range p.others {
		for address := range strings.SplitSeq(m.PeerAddress(), serverlist.AddressSeparator) {
			if a, err := resolve(ctx, address); err == nil && listensAt(l, a) && onThisMachine(a.IP) {
				return true
			}
		}
	}
	return false
}

func onThisMachine(ip net.IP) bool {
	own, err := net.InterfaceAddrs()
	return err == nil && (ip.IsLoopback() || slices.ContainsFunc(own, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.IP.Equal(ip)
	}))
}

// open listens on text, one or several addresses, unless it listens there already. It listens on
// all addresses of this machine if none of these is one of this machine, or not yet. at are the
// listeners for text.
func (m *Members) open(ctx context.Context, text string) (at []net.Listener, err error) {
	addresses := strings.Split(text, serverlist.AddressSeparator)
	var errs []error
	for _, address := range addresses {
		l, err := m.listen(ctx, address)
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
		m.logger.Warn("this server does not listen for other servers on all addresses of its line", "error", err)
		return at, nil
	case neterr.Is(err, syscall.EADDRINUSE): // it may be free by now, but all addresses would be more than it was asked for
		return nil, err
	}
	_, port, splitErr := net.SplitHostPort(addresses[0])
	if splitErr != nil {
		return nil, splitErr
	}
	all := m.onPort(port)
	if !notHere(err) || all == nil {
		var allErr error
		if all, allErr = m.listen(ctx, net.JoinHostPort("", port)); allErr != nil {
			return nil, err
		}
	}
	m.logger.Warn("the address for other servers is not an address of this machine, so this server listens "+
		"elsewhere on the same port",
		"address", text, "listen", all.Addr().String(), "error", err)
	return []net.Listener{all}, nil
}

func (m *Members) listen(ctx context.Context, address string) (net.Listener, error) {
	if a, err := resolve(ctx, address); err == nil {
		for _, l := range m.joined.All() {
			if listensAt(l, a) {
				return l, nil
			}
		}
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return l, m.joined.Add(l)
}

func (m *Members) onPort(port string) net.Listener {
	for _, l := range m.joined.All() {
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

func listensAt(l net.Listener, address net.Addr) bool {
	at, ok := l.Addr().(*net.TCPAddr)
	a, tcp := address.(*net.TCPAddr)
	return ok && tcp && at.Port == a.Port && (at.IP.IsUnspecified() || at.IP.Equal(a.IP))
}
