package cluster

import (
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
	"github.com/gozkd/gozkd/server"
)

const (
	// tick is ZooKeeper's tickTime here: short, since elections take a fraction of it, and a session can't last less than two.
	tick = 500 * time.Millisecond
	// maxSessionTimeout lets clients have the timeouts that they ask for.
	maxSessionTimeout = time.Hour
	// peerPort is the port of every member on the network between them, where each is a host.
	peerPort = 2888
	// memoryPort is the first client port on a network in memory.
	memoryPort = 21810
	// clientHost is where clients are on the network in memory.
	clientHost = "client"
	// linkLatency is what a link in memory takes where time is virtual: without any, clients that always have something to do would keep
	// time from passing.
	linkLatency = 50 * time.Microsecond
	// MaxMembers is the largest number of members.
	MaxMembers = memberdir.MaxMembers
)

var errClosed = errorf(ErrState, "cluster: closed already")

// Config says what a lab is made of. The zero value is one server in memory on a free port.
type Config struct {
	// Members is how many servers there are: one, or an ensemble.
	Members int
	// InMemory lets clients come over a network in memory instead of TCP, see Dialer. It is for bubbles of virtual time.
	InMemory bool
	// Host is where clients come in. Default: 127.0.0.1.
	Host string
	// ClientPort is the first member's port, and the others' follow it. 0: free ones.
	ClientPort int
	// Dir keeps the data of a server alone, and of member N in Dir/N. Empty: in memory, as long as the lab lasts.
	Dir string
	// Server is what all members have in common. Defaults: a Tick of 500 ms, sessions of up to an hour, no limit of connections, all
	// four-letter words. Where clients and members find each other, number, data, clock and logger are the lab's own, but for
	// LogDir, which like Dir is that of a server alone, and has one directory for each member.
	Server server.Config
	// Adapt may change what a member is started with, at each start.
	Adapt func(member int, c *server.Config)
	// Logger gets the servers' log lines. Default: none.
	Logger hclog.Logger
}

func (c *Config) ensureDefaults() error {
	if c.Members == 0 {
		c.Members = 1
	}
	if c.Host == "" {
		c.Host = "127.0.0.1"
	}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	if c.Server.Tick == 0 {
		c.Server.Tick = tick
	}
	if c.Server.MaxSessionTimeout == 0 {
		c.Server.MaxSessionTimeout = maxSessionTimeout
	}
	if c.Server.MaxClientConns == 0 {
		c.Server.MaxClientConns = -1
	}
	if c.Server.Words == nil {
		c.Server.Words = []string{"*"}
	}
	var errs []error
	if c.Members < 1 || c.Members > MaxMembers {
		errs = append(errs, fmt.Errorf("cluster: %d members, allowed are 1 to %d", c.Members, MaxMembers))
	}
	if last := c.ClientPort + c.Members - 1; c.ClientPort < 0 || c.ClientPort > 0 && last > 65535 {
		errs = append(errs, fmt.Errorf("cluster: client ports %d to %d, allowed are 1 to 65535, and 0 for free ones", c.ClientPort, last))
	}
	return errors.Join(errs...)
}

// Cluster is a server or an ensemble. Its methods may be called from any goroutine.
type Cluster struct {
	cfg      Config
	network  *memnet.Network
	rules    faultproxy.Rules
	offset   offset
	members  []*Member
	closed   atomic.Bool
	runs     sync.WaitGroup // of members
	failures chan error     // capacity 1

	links     links
	advancing chanMutex  // one Advance at a time
	jumping   sync.Mutex // held while the clocks jump. No member may come to stand still then: the jump would wait for it, with locks of others
}

// Start starts all members, and returns when they serve.
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
	listeners := make([]net.Listener, 0, cfg.Members)
	for id := 1; id <= cfg.Members; id++ {
		m := &Member{cluster: c, id: id, clock: newClock(&c.offset), transition: newChanMutex()}
		m.now.Store(&memberRun{state: Down})
		if cfg.Dir == "" {
			m.memory = new(server.Memory)
		}
		first, err := m.openPort()
		if err != nil {
			for _, l := range listeners {
				_ = l.Close() // nobody has used it
			}
			return nil, errors.Join(err, c.Close())
		}
		listeners = append(listeners, first)
		c.members = append(c.members, m)
	}
	c.links.reset(cfg.Members)
	for i, m := range c.members {
		if err := m.launch(listeners[i]); err != nil {
			for _, l := range listeners[i+1:] {
				_ = l.Close() // nobody has used it
			}
			return nil, errors.Join(err, c.Close())
		}
	}
	if err := c.awaitServing(ctx, c.members...); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (m *Member) openPort() (l net.Listener, err error) {
	cfg, number := &m.cluster.cfg, 0
	var network *memnet.Network
	switch {
	case cfg.InMemory:
		network, number = m.cluster.network, memoryPort+m.id-1
	case cfg.ClientPort != 0:
		number = cfg.ClientPort + m.id - 1
	}
	m.port, l, err = openPort(network, net.JoinHostPort(cfg.Host, strconv.Itoa(number)))
	return l, err
}

// Close ends all members at once. It waits until nothing of them is left.
func (c *Cluster) Close() error {
	c.closed.Store(true)
	errs := make([]error, len(c.members))
	var wg sync.WaitGroup
	for i, m := range c.members {
		wg.Go(func() {
			m.transition.lock()
			defer m.transition.unlock()
			if m.server != nil {
				errs[i] = m.end(m.server.Abort) // nobody is left who should notice a crash
			}
			m.port.release()
		})
	}
	wg.Wait()
	c.runs.Wait()
	c.network.Tear(clientHost, "") // clients of members that did not say goodbye
	return errors.Join(errs...)
}

// Failed delivers at most one error: that a member stopped by itself, as with a broken disk. It is down then.
func (c *Cluster) Failed() <-chan error { return c.failures }

// Members returns all members, by their numbers.
func (c *Cluster) Members() []*Member { return slices.Clone(c.members) }

// Member returns the one with that number.
func (c *Cluster) Member(id int) (*Member, error) {
	if id < 1 || id > len(c.members) {
		return nil, errorf(ErrNotFound, "cluster: there is no member %d: they are numbered 1 to %d", id, len(c.members))
	}
	return c.members[id-1], nil
}

// ConnectString returns the addresses of all members for a client's connect string.
func (c *Cluster) ConnectString() string {
	addresses := make([]string, len(c.members))
	for i, m := range c.members {
		addresses[i] = m.Address()
	}
	return strings.Join(addresses, ",")
}

// Dial connects to the address of a member like net.Dialer, over memory if the lab's clients come over that.
func (c *Cluster) Dial(ctx context.Context, address string) (net.Conn, error) {
	if c.cfg.InMemory {
		return c.network.Dial(ctx, clientHost, address)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", address)
}

// Arm makes a fault wait for its request. What it says in session and path decides for all members.
func (c *Cluster) Arm(f faultproxy.Fault) (*faultproxy.Armed, error) { return c.rules.Add(f) }

// Disarm takes back all faults that wait.
func (c *Cluster) Disarm() { c.rules.Clear() }

// living returns the members that run and are not paused.
func (c *Cluster) running() (running []*Member) {
	for _, m := range c.members {
		if m.State() == Running {
			running = append(running, m)
		}
	}
	return running
}

// awaitServing returns when the members that can serve do: those that run, are not cut off, and are in the majority. It returns at
// once if there is no majority of such. If one of the members in question fails to start, it is down again, and the error says why.
func (c *Cluster) awaitServing(ctx context.Context, started ...*Member) error {
	for _, m := range started {
		if err := c.awaitStart(ctx, m); err != nil {
			return err
		}
	}
	for _, m := range c.majority() {
		if s := m.Server(); s != nil {
			err := c.whileServing(ctx, m, s, func(ctx context.Context, s *server.Server) error {
				// What it told the leader before, such as that it had no data, is known there when it has caught up.
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

// awaitStart returns when a member has started, or has nothing to wait for: it was ended again, or can't serve as things are.
func (c *Cluster) awaitStart(ctx context.Context, m *Member) error {
	poll := time.NewTicker(pollTime)
	defer poll.Stop()
	for {
		now := m.now.Load()
		if now.server == nil {
			return nil
		}
		select {
		case <-now.start.over:
			switch {
			case now.start.err == nil:
				return nil
			case m.now.Load().start == now.start:
				return m.fail(now)
			}
			continue // somebody else ended it meanwhile, and may have started it again
		default:
		}
		if !c.serves(m, now.server) {
			return nil
		}
		select {
		case <-now.start.over:
		case <-poll.C:
		case <-ctx.Done():
			return fmt.Errorf("cluster: %s does not serve: %w", m.name(), ctx.Err())
		}
	}
}

// fail takes a member down whose server did not start.
func (m *Member) fail(now *memberRun) error {
	m.transition.lock()
	defer m.transition.unlock()
	if m.server != now.server {
		return nil // somebody else ended it meanwhile
	}
	return errors.Join(fmt.Errorf("cluster: start %s: %w", m.name(), now.start.err), m.end(m.server.Abort))
}

// states is for messages.
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
