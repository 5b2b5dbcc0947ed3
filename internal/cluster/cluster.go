package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/internal/faultproxy"
	"github.com/gozkd/gozkd/internal/memberdir"
	"github.com/gozkd/gozkd/internal/memnet"
	"github.com/gozkd/gozkd/internal/parallel"
	"github.com/gozkd/gozkd/internal/portfile"
	"github.com/gozkd/gozkd/internal/tcpport"
	"github.com/gozkd/gozkd/server"
)

const (
	// tick is the default tickTime. It is short because elections take a fraction of it, and
	// because sessions last two ticks at least.
	tick = 500 * time.Millisecond
	// maxSessionTimeout is long enough for clients to get the timeout that they ask for.
	maxSessionTimeout = time.Hour
	// peerPort is the port of every member on the network between members, on which each member is
	// a host.
	peerPort = 2888
	// memoryPort is the first client port on a network in memory.
	memoryPort = 21810
	// clientHost is the host of all clients on a network in memory.
	clientHost = "client"
	// linkLatency is the latency of a network in memory in virtual time. With latency 0, clients
	// that are never idle would stop the clock.
	linkLatency = 50 * time.Microsecond
	// MaxMembers is the largest number of members.
	MaxMembers = memberdir.MaxMembers
)

var errClosed = errorf(ErrState, "cluster: closed already")

// Config describes a cluster. The zero value is a single server in memory on a free port.
type Config struct {
	// Members is the number of servers. Several servers form an ensemble. Default: 1.
	Members int
	// InMemory connects clients over a network in memory instead of TCP; see Dial. Bubbles of
	// virtual time need it.
	InMemory bool
	// Plain members are not for tests: clients reach them without a gate, their clock is the
	// system's, and the defaults of Host and Server are those of package server. No fault may be
	// injected: neither Advance, CloseConnection, CloseConnections, Kill, MemberOf, Partition,
	// Pause nor Restart may be called.
	Plain bool
	// Host is the address to listen on for clients. Default: 127.0.0.1.
	Host string
	// ClientPort is the first member's client port; the other members have the following ports. 0:
	// free ports.
	ClientPort int
	// Ports are the client ports of all members, instead of consecutive ones; 0: a free port.
	Ports []int
	// Dir keeps the data: of a standalone server in Dir, of member N in Dir/N. Empty: in memory,
	// until Close.
	Dir string
	// Server is the configuration of all members. Defaults: a Tick of 500 ms, sessions of up to an
	// hour, no limit of connections, all four-letter words. The cluster sets addresses, MemberID,
	// directories, clock and logger itself; LogDir is divided among the members as Dir is.
	Server server.Config
	// Down leaves the members down, with their ports reserved, until they are started.
	Down bool
	// Adapt may change the configuration of a member before each of its starts.
	Adapt func(member int, c *server.Config)
	// Logger gets the servers' log lines. Default: none.
	Logger hclog.Logger
}

func (c *Config) ensureDefaults() error {
	c.Members = cmp.Or(c.Members, 1)
	c.Logger = cmp.Or(c.Logger, hclog.NewNullLogger())
	if !c.Plain {
		c.Host = cmp.Or(c.Host, "127.0.0.1")
		c.Server.Tick = cmp.Or(c.Server.Tick, tick)
		c.Server.MaxSessionTimeout = cmp.Or(c.Server.MaxSessionTimeout, maxSessionTimeout)
		c.Server.MaxClientConns = cmp.Or(c.Server.MaxClientConns, -1)
		if c.Server.Words == nil {
			c.Server.Words = []string{"*"}
		}
	}
	var errs []error
	if c.Members < 1 || c.Members > MaxMembers {
		errs = append(errs, fmt.Errorf("cluster: %d members, allowed are 1 to %d", c.Members, MaxMembers))
	}
	if last := c.ClientPort + c.Members - 1; c.ClientPort < 0 || c.ClientPort > 0 && last > 65535 {
		errs = append(errs, fmt.Errorf("cluster: client ports %d to %d, allowed are 1 to 65535; port 0 selects free ports", c.ClientPort, last))
	}
	return errors.Join(errs...)
}

// Cluster is a server or an ensemble. Its methods may be called from any goroutine.
type Cluster struct {
	cfg      Config
	network  *memnet.Network
	rules    faultproxy.Rules
	offset   atomic.Int64 // the time that Advance has added, for all members
	members  []*Member
	closed   atomic.Bool
	runs     sync.WaitGroup // of the goroutines that wait for members to end
	failures chan error     // capacity 1

	links     links
	advancing chanMutex // held by Advance
	// Held while the clocks jump. Pause acquires it too: a jump would wait for a paused member
	// while holding locks of other members.
	jumping sync.Mutex
}

// Start starts all members, except with Config.Down, and returns when they serve.
func Start(ctx context.Context, cfg Config) (*Cluster, error) {
	if err := cfg.ensureDefaults(); err != nil {
		return nil, err
	}
	if err := memberdir.Check(cfg.Dir, cfg.Members); err != nil {
		return nil, errorf(ErrState, "cluster: %w", err)
	}
	latency := time.Duration(0)
	if cfg.InMemory {
		latency = linkLatency
	}
	c := &Cluster{cfg: cfg, network: memnet.New(latency), advancing: newChanMutex(), failures: make(chan error, 1)}
	for id := 1; id <= cfg.Members; id++ {
		m := &Member{cluster: c, id: id, clock: newClock(&c.offset), transition: newChanMutex()}
		m.run.Store(new(memberRun))
		if cfg.Dir == "" && !cfg.Plain {
			m.memory = new(server.Memory)
		}
		if err := m.reservePort(); err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c.members = append(c.members, m)
	}
	c.links.reset(cfg.Members)
	for _, m := range c.members {
		if cfg.Down {
			break
		}
		if err := m.launch(); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	if err := c.awaitServing(ctx, c.members...); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (m *Member) reservePort() error {
	cfg, number := &m.cluster.cfg, 0
	switch {
	case cfg.InMemory:
		number = memoryPort + m.id - 1
	case len(cfg.Ports) > 0:
		number = cfg.Ports[m.id-1]
	case cfg.ClientPort != 0:
		number = cfg.ClientPort + m.id - 1
	}
	address := net.JoinHostPort(cfg.Host, strconv.Itoa(number))
	if cfg.InMemory {
		m.port = portInMemory{m.cluster.network, address}
		return nil
	}
	p, err := tcpport.Reserve(address)
	if err != nil {
		return fmt.Errorf("cluster: client port: %w", err)
	}
	m.port = p
	return nil
}

// Close ends all members at once and waits for all their goroutines.
func (c *Cluster) Close() error {
	c.closed.Store(true)
	errs := parallel.Each(len(c.members), len(c.members), func(i int) (err error) {
		m := c.members[i]
		m.transition.lock()
		defer m.transition.unlock()
		if s := m.Server(); s != nil {
			err = m.end(s.Abort) // no member is left that a crash could harm
		}
		m.port.Release()
		return err
	})
	c.runs.Wait()
	c.network.Tear(clientHost, "") // connections that clients left open
	return errors.Join(errs...)
}

// Failed delivers at most one error: that of a member that stopped by itself, for example because
// of a disk error. That member is down.
func (c *Cluster) Failed() <-chan error { return c.failures }

// Await returns the error of Failed, or nil when ctx ends.
func (c *Cluster) Await(ctx context.Context) error {
	select {
	case err := <-c.failures:
		return err
	case <-ctx.Done():
		return nil
	}
}

// Ports says where the members listen.
func (c *Cluster) Ports() portfile.Ports {
	where := portfile.Ports{Client: c.ConnectString()}
	for _, m := range c.members {
		where.Members = append(where.Members, portfile.Member{ID: m.id, Client: m.Address()})
	}
	return where
}

// Members returns all members, in the order of their numbers.
func (c *Cluster) Members() []*Member { return slices.Clone(c.members) }

// Member returns the member with that number.
func (c *Cluster) Member(id int) (*Member, error) {
	if id < 1 || id > len(c.members) {
		return nil, errorf(ErrNotFound, "cluster: there is no member %d: they are numbered 1 to %d", id, len(c.members))
	}
	return c.members[id-1], nil
}

// ConnectString returns the addresses of all members as a connect string.
func (c *Cluster) ConnectString() string {
	addresses := make([]string, len(c.members))
	for i, m := range c.members {
		addresses[i] = m.Address()
	}
	return strings.Join(addresses, ",")
}

// Dial connects to the address of a member, over memory if the clients use memory, otherwise over
// TCP.
func (c *Cluster) Dial(ctx context.Context, address string) (net.Conn, error) {
	if c.cfg.InMemory {
		return c.network.Dial(ctx, clientHost, address)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", address)
}

// Arm adds a fault for requests to any member.
func (c *Cluster) Arm(f faultproxy.Fault) (*faultproxy.Armed, error) { return c.rules.Add(f) }

// Disarm removes all faults.
func (c *Cluster) Disarm() { c.rules.Clear() }

// running returns the members that run and are not paused.
func (c *Cluster) running() (running []*Member) {
	for _, m := range c.members {
		if m.State() == Running {
			running = append(running, m)
		}
	}
	return running
}

// awaitServing returns when the members of the majority serve; if there is no majority, it does not
// wait. If a member of started fails to start, that member is down again and the error says why.
func (c *Cluster) awaitServing(ctx context.Context, started ...*Member) error {
	for _, m := range started {
		if err := c.awaitStart(ctx, m); err != nil {
			return err
		}
	}
	for _, m := range c.majority() {
		if s := m.Server(); s != nil {
			err := c.whileServing(ctx, m, s, func(ctx context.Context, s *server.Server) error {
				// CatchUp makes sure that the leader knows what this member reported, such as that
				// the member had no data.
				return errors.Join(s.Ready(ctx), s.CatchUp(ctx))
			})
			if err != nil && c.serves(m, s) {
				return fmt.Errorf("cluster: %s: %w", m.name(), err)
			}
		}
	}
	c.awaitVoters(ctx)
	return nil
}

// awaitStart returns when a member has started, has been ended again, or cannot serve because it is
// outside the majority.
func (c *Cluster) awaitStart(ctx context.Context, m *Member) error {
	poll := time.NewTicker(pollTime)
	defer poll.Stop()
	for {
		run := m.run.Load()
		if run.server == nil {
			return nil
		}
		select {
		case <-run.started:
			switch {
			case run.err == nil:
				return nil
			case m.run.Load() == run:
				return m.fail(run)
			}
			continue // another goroutine ended the run, and may have started the member again
		default:
		}
		if !c.serves(m, run.server) {
			return nil
		}
		select {
		case <-run.started:
		case <-poll.C:
		case <-ctx.Done():
			return fmt.Errorf("cluster: %s does not serve: %w", m.name(), ctx.Err())
		}
	}
}

// fail ends a member whose server did not start.
func (m *Member) fail(run *memberRun) error {
	m.transition.lock()
	defer m.transition.unlock()
	if m.run.Load() != run {
		return nil // another goroutine ended the run
	}
	return errors.Join(fmt.Errorf("cluster: start %s: %w", m.name(), run.err), m.end(run.server.Abort))
}

// states describes the members in an error.
func (c *Cluster) states() string {
	words := make([]string, len(c.members))
	for i, m := range c.members {
		words[i] = fmt.Sprintf("%s %s", m.name(), m.State())
		if s := m.Server(); s != nil && m.State() == Running {
			if st := s.Status(); st.Mode != "" {
				words[i] += " as " + st.Mode
			}
		}
		if c.links.isIsolated(m) {
			words[i] += ", cut off"
		}
	}
	return strings.Join(words, ", ")
}

// chanMutex is a mutex for operations that may take long. Goroutines wait for it on a channel, so
// that time can pass in a synctest bubble meanwhile; waiting for a sync.Mutex would stop the
// bubble's clock.
type chanMutex chan struct{}

func newChanMutex() chanMutex { return make(chanMutex, 1) }

func (b chanMutex) lock()   { b <- struct{}{} }
func (b chanMutex) unlock() { <-b }

// clock is a member's clock. While it is stopped, every caller of now waits. A server reads the
// clock before it does anything, so it stands still, while its sockets accept data like those of a
// stopped process.
type clock struct {
	offset *atomic.Int64

	mu      sync.Mutex
	changed sync.Cond
	stopped bool
}

func newClock(offset *atomic.Int64) *clock {
	c := &clock{offset: offset}
	c.changed.L = &c.mu
	return c
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	for c.stopped {
		c.changed.Wait()
	}
	c.mu.Unlock()
	return time.Now().Add(time.Duration(c.offset.Load()))
}

func (c *clock) set(stopped bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = stopped
	c.changed.Broadcast()
}
