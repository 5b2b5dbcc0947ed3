// Package ensemble has the places of the servers of an ensemble that run in one process: their data
// directories, their ports for clients, and the network between them. gozkd --ensemble runs servers
// there, and package cluster runs and disturbs them.
package ensemble

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/memnet"
	"github.com/gozkd/gozkd/internal/neterr"
	"github.com/gozkd/gozkd/internal/portfile"
	"github.com/gozkd/gozkd/internal/tcpport"
)

const (
	// peerPort is every member's port on the network between members, where each is a host.
	peerPort = 2888
	// clientHost is the host of all clients on a network in memory.
	clientHost = "client"
	// linkLatency is the latency of a network in memory in virtual time. With latency 0, clients
	// that are never idle would stop the clock.
	linkLatency = 50 * time.Microsecond
)

// Ensemble is the places of a server alone, or of the members of an ensemble.
type Ensemble struct {
	// Network connects the members.
	Network  *memnet.Network
	Members  []*Member // in the order of their numbers, which begin with 1
	inMemory bool
	setting  string // where client ports are chosen
}

// Addresses returns n addresses on a host with ports from first on, or free ones if first is 0.
func Addresses(host string, first, n int) []string {
	addresses := make([]string, max(n, 0))
	for i := range addresses {
		addresses[i] = net.JoinHostPort(host, strconv.Itoa(first+min(first, 1)*i))
	}
	return addresses
}

// New reserves the client ports of members. With inMemory clients connect over a network in memory
// instead of TCP; see Dial. dir is where the members keep their data, or empty. setting says in
// errors where the user chooses client ports.
func New(dir string, addresses []string, inMemory bool, setting string) (*Ensemble, error) {
	n, latency := len(addresses), time.Duration(0)
	if n < 1 || n > MaxMembers {
		return nil, fmt.Errorf("%d members, allowed are 1 to %d", n, MaxMembers)
	}
	if err := checkDir(dir, n); err != nil {
		return nil, err
	}
	if inMemory {
		latency = linkLatency
	}
	e := &Ensemble{Network: memnet.New(latency), inMemory: inMemory, setting: setting}
	for i, address := range addresses {
		e.Members = append(e.Members, &Member{
			ensemble: e, id: i + 1, dir: dirOf(dir, i+1, n), address: address, port: new(tcpport.Port),
			listen: func() (net.Listener, error) { return e.Network.Listen(address) },
		})
	}
	for _, m := range e.Members {
		if inMemory {
			break
		}
		p, err := tcpport.Reserve(m.address)
		if err != nil {
			e.Close()
			return nil, fmt.Errorf("%s: %w", m.Name(), m.portError(err))
		}
		m.port, m.address, m.listen = p, p.Address(), p.Listen
	}
	return e, nil
}

// Close gives up the ports. All servers have ended.
func (e *Ensemble) Close() {
	for _, m := range e.Members {
		m.port.Release()
	}
	e.Network.Tear(clientHost, "") // connections that clients left open
}

// Ports says where the members listen.
func (e *Ensemble) Ports() (where portfile.Ports) {
	addresses := make([]string, len(e.Members))
	for i, m := range e.Members {
		addresses[i] = m.address
		where.Members = append(where.Members, portfile.Member{ID: m.id, Client: m.address})
	}
	where.Client = strings.Join(addresses, ",")
	return where
}

// ConnectString returns the addresses of all members as a connect string.
func (e *Ensemble) ConnectString() string { return e.Ports().Client }

// Dial connects to a member's address, over memory if clients use memory, otherwise over TCP.
func (e *Ensemble) Dial(ctx context.Context, address string) (net.Conn, error) {
	if e.inMemory {
		return e.Network.Dial(ctx, clientHost, address)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", address)
}

// Member is the place of a member, for one server after the other.
type Member struct {
	ensemble     *Ensemble
	id           int
	dir, address string
	listen       func() (net.Listener, error)
	port         *tcpport.Port // no port on a network in memory
}

// ID returns the member's number, 1 for a standalone server.
func (m *Member) ID() int { return m.id }

// Address returns host:port for clients. It never changes.
func (m *Member) Address() string { return m.address }

// Dir returns the data directory, or "" if the data is in memory.
func (m *Member) Dir() string { return m.dir }

// Own returns the member's part of another directory.
func (m *Member) Own(dir string) string { return dirOf(dir, m.id, len(m.ensemble.Members)) }

// Host returns the member's host on the network between members.
func (m *Member) Host() string { return "m" + strconv.Itoa(m.id) }

// Name returns the member's name in errors.
func (m *Member) Name() string {
	if len(m.ensemble.Members) == 1 {
		return "the server"
	}
	return fmt.Sprintf("member %d", m.id)
}

func (m *Member) portError(err error) error {
	return neterr.ListenError("client port", err, m.ensemble.setting)
}

// Hold renews the reservation of the client port after a server's end.
func (m *Member) Hold() { m.port.Hold() }

// Listen opens the client port and, in an ensemble, the port for other members.
func (m *Member) Listen() (clients, peers net.Listener, err error) {
	if clients, err = m.listen(); err != nil {
		return nil, nil, m.portError(err)
	}
	if len(m.ensemble.Members) > 1 {
		if peers, err = m.ensemble.Network.Listen(net.JoinHostPort(m.Host(), strconv.Itoa(peerPort))); err != nil {
			_ = clients.Close() // nobody was accepted
			return nil, nil, err
		}
	}
	return clients, peers, nil
}

// DialPeer connects the member to another one.
func (m *Member) DialPeer(ctx context.Context, address string) (net.Conn, error) {
	return m.ensemble.Network.Dial(ctx, m.Host(), address)
}

// Lines returns the server lines of all members, or none for a server alone.
func (e *Ensemble) Lines() (lines []string) {
	for _, m := range e.Members {
		if len(e.Members) > 1 {
			lines = append(lines, fmt.Sprintf("server.%d=%s:%d:%d:participant;%s", m.id, m.Host(), peerPort, peerPort+1, m.address))
		}
	}
	return lines
}
