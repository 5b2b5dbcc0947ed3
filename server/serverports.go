package server

import (
	"cmp"
	"context"
	"math"
	"net"
	"time"

	"github.com/gozkd/gozkd/internal/fair"
	"github.com/gozkd/gozkd/internal/neterr"
	"github.com/gozkd/gozkd/internal/serverlist"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/internal/members"
	"github.com/gozkd/gozkd/server/internal/ports"
)

// serverPorts owns the ports of a server, for clients and for other members, and knows where they
// are: by the configuration, until a reconfig moves this server. It opens them for Start. Later the
// goroutines of Clients.Follow and Members.Follow alone replace listeners; the goroutine of Apply
// tells them where to (move). The secure port never moves. Connections stay when a port moves.
type serverPorts struct {
	*shared
	plain     ports.Clients      // without a listener: in process only
	secure    ports.Port         // without a listener: there is none
	peers     *ports.Members     // nil: there are none, or Config.PeerListener
	addresses *members.Addresses // of all members; nil before the data is opened
	search    members.Search     // finds members that are elsewhere now
	// sockets is how many connections the file descriptors of the process suffice for; 0: the
	// connections are no sockets, or the system does not tell. Set before Start accepts any.
	sockets int
}

// strangers bounds the cost of clients that have no session yet.
type strangers struct {
	claims   *fair.Rate // without merit, of each address, by the runtime's clock
	throttle connectBucket
	words    wordGate
	// handshakes are the TLS handshakes under way, which cost memory and time before the client has
	// proved anything.
	handshakes fair.Places[*conn]
}

// init prepares the ports. None is open yet.
func (p *serverPorts) init(s *shared) {
	p.shared = s
	line, _ := s.members.Get(uint64(s.cfg.MemberID))
	p.plain.Init(ports.ClientsConfig{
		Address: s.cfg.Listen, Line: line, Listen: s.cfg.listen, Logger: s.cfg.Logger,
	})
}

func (p *serverPorts) openClients(ctx context.Context) error {
	c, address := p.cfg, p.cfg.Listen
	if c.InProcess {
		address = ""
	}
	if err := p.open(ctx, &p.plain.Port, c.Listener, address); err != nil {
		return neterr.ListenError("server: client port", err, "--client-port, clientPort, clientPortAddress, the server lines, or Config.Listen")
	}
	err := p.open(ctx, &p.secure, c.SecureListener, c.SecureListen)
	return neterr.ListenError("server: secure client port", err, "secureClientPort, secureClientPortAddress, or Config.SecureListen")
}

// serve begins to accept clients, and lets the ports follow reconfigs until run ends. accept runs
// for each listener until that closes.
func (p *serverPorts) serve(run context.Context, accept func(net.Listener, portKind)) {
	begin := p.life.Goroutines.Go // stopped by closing the listeners or by run, awaited by shutdown
	acceptFrom := func(l net.Listener) { begin(func() { accept(l, portPlain) }) }
	if l := p.plain.Listener(); l != nil {
		acceptFrom(l)
	}
	if p.cfg.Listener == nil && !p.cfg.InProcess && !p.cfg.ListenFixed && !p.alone() {
		begin(func() { p.plain.Follow(run, acceptFrom) })
	}
	if p.peers != nil {
		begin(func() { p.peers.Follow(run, p.connectedAt) })
	}
	if l := p.secure.Listener(); l != nil {
		begin(func() { accept(l, portSecure) })
	}
}

func (c *Config) listen(ctx context.Context, address string) (net.Listener, error) {
	if c.hooks.Listen != nil {
		return c.hooks.Listen(address)
	}
	keepAlive := time.Duration(-1) // none
	if c.ClientKeepAlive {
		keepAlive = 0 // the runtime's default
	}
	l, err := (&net.ListenConfig{KeepAlive: keepAlive}).Listen(ctx, "tcp", address)
	if err == nil && c.ListenBacklog > 0 {
		if err := setBacklog(l, c.ListenBacklog); err != nil {
			c.Logger.Warn("the client port has the system's backlog, not that of clientPortListenBacklog", "error", err)
		}
	}
	return l, err
}

// open makes l, or else a new one on address, the listener of a port. Without both there is none.
func (p *serverPorts) open(ctx context.Context, port *ports.Port, l net.Listener, address string) (err error) {
	if l == nil && address != "" {
		l, err = p.cfg.listen(ctx, address)
	}
	if l == nil || err != nil {
		return err
	}
	port.Replace(l)
	switch l.Addr().Network() {
	case "tcp", "unix":
		if open, limit, ok := fileDescriptors(); ok {
			p.sockets = socketLimit(open, limit)
		}
	}
	return nil
}

func socketLimit(open, limit int64) int {
	return int(min(max(limit-open-reserved(limit), 8), math.MaxInt32))
}

// reserved returns how many of the file descriptors that the process may have are not for clients:
// a quarter, 32 to 2048. Half of them are for the port of other members, whose bound they are; the
// others are for HTTP, for the log and checkpoints.
func reserved(limit int64) int64 { return min(max(limit/4, 32), 2048) }

// peerConns returns the bound on the connections that the port for other members accepts; 0: the
// default of the package peer, 1,024, which is also the most.
func peerConns() int {
	if _, limit, ok := fileDescriptors(); ok {
		return int(reserved(limit) / 2)
	}
	return 0
}

// maxConns returns the bound on all connections; 0 or negative: none.
func (p *serverPorts) maxConns() int {
	return cmp.Or(p.live.Load().MaxConns, p.sockets)
}

// move makes the ports for clients and members follow this server's line in the committed members,
// and consensus the addresses of wanted, which are these and those of a reconfig under way.
func (p *serverPorts) move(current serverlist.Set, version proto.Zxid, wanted serverlist.Set) {
	if err := p.addresses.Update(current, version, wanted); err != nil {
		p.cfg.Logger.Warn("the addresses of the other servers cannot be saved for the next start", "error", err)
	}
	self := uint64(p.cfg.MemberID)
	p.search.Follow(self, p.addresses, p.node.SetMembers)
	line, in := current.Get(self)
	if version == 0 || !in {
		return
	}
	// Without reconfig the configuration of this server decides, at its next start.
	if line.ClientPort != 0 && p.live.Load().ReconfigEnabled {
		p.plain.Move(line)
	}
	if p.peers == nil {
		return
	}
	var others []serverlist.Member
	for _, m := range current {
		if m.ID != self {
			others = append(others, m)
		}
	}
	_, listen := p.peerListenAddresses()
	p.peers.Move(listen, others)
}

func (p *serverPorts) openPeers(ctx context.Context) (l net.Listener, err error) {
	if p.addresses, err = members.OpenAddresses(p.cfg.hooks.DataFS, p.cfg.Dir, p.members); err != nil {
		return nil, err
	}
	if p.cfg.PeerListener != nil || p.alone() {
		return p.cfg.PeerListener, nil
	}
	configured, wanted := p.peerListenAddresses()
	m, err := ports.OpenMembers(ctx, configured, wanted, p.cfg.Logger)
	if err != nil {
		return nil, neterr.ListenError("server: peer port", err, "the server lines, or Config.PeerListen")
	}
	p.peers = m
	return m.Listener(), nil
}

// formTicks returns consensus' FormTicks. Whoever emptied the directory may have left the file that
// names the members.
func (p *serverPorts) formTicks() int {
	if p.addresses.Replicated() {
		return -1
	}
	return p.cfg.InitLimit * int(p.cfg.Tick/raftTick(p.cfg.Tick))
}

// peerListenAddresses returns where this server listens for other members by its configuration, and
// where it should listen: there, until a reconfig moves this server.
func (p *serverPorts) peerListenAddresses() (configured, wanted string) {
	configured, wanted = cmp.Or(p.cfg.PeerListen, p.peerAddress()), p.reachedAt()
	if wanted == p.peerAddress() {
		return configured, configured
	}
	return configured, ports.PeerAddress(configured, wanted)
}

// reachedAt returns where the other members reach this one: by its own line, until a reconfig moves
// it.
func (p *serverPorts) reachedAt() string {
	if own, ok := p.addresses.Local(uint64(p.cfg.MemberID)); ok {
		return own.PeerAddress()
	}
	return p.peerAddress() // a reconfig has removed it
}

// connectedAt returns the addresses of this server at which other members are connected.
func (p *serverPorts) connectedAt() map[uint64]net.Addr {
	at := make(map[uint64]net.Addr)
	for _, link := range p.node.PeerLinks() {
		if link.Incoming {
			at[link.ID] = link.IncomingAt
		}
	}
	return at
}

// peerAddress returns where the other members reach this one, by its own line.
func (p *serverPorts) peerAddress() string {
	own, ok := p.members.Get(uint64(p.cfg.MemberID))
	if !ok {
		return ""
	}
	return own.PeerAddress()
}
