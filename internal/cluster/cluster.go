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

	"github.com/gozkd/gozkd/internal/backoff"
	"github.com/gozkd/gozkd/internal/ensemble"
	"github.com/gozkd/gozkd/internal/faultproxy"
	"github.com/gozkd/gozkd/internal/parallel"
	"github.com/gozkd/gozkd/server"
)

const (
	// tick is the default tickTime. It is short because elections take a fraction of it, and
	// because sessions last two ticks at least.
	tick = 500 * time.Millisecond
	// maxSessionTimeout is long enough for clients to get the timeout that they ask for.
	maxSessionTimeout = time.Hour
	// memoryPort is the first client port on a network in memory.
	memoryPort = 21810
	// MaxMembers is the largest number of members.
	MaxMembers = ensemble.MaxMembers
)

var errClosed = errorf(ErrState, "cluster: closed already")

// Config describes a cluster. The zero value is a single server in memory on a free port.
type Config struct {
	// Members is the number of servers. Several servers form an ensemble. Default: 1.
	Members int
	// InMemory connects clients over a network in memory, as virtual time needs it; see Dial.
	InMemory bool
	// Host is the address to listen on for clients. Default: 127.0.0.1.
	Host string
	// ClientPort is that of the first member; the others have the following ports. 0: free ports.
	ClientPort int
	// Ports are the client ports of all members, instead of consecutive ones; 0: a free port.
	Ports []int
	// Dir keeps the data: a lone server's in Dir, member N's in Dir/N. Empty: memory, until Close.
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

// Cluster is a server or an ensemble. Its methods may be called from any goroutine.
type Cluster struct {
	*ensemble.Ensemble
	cfg      Config
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
	cfg.Logger = cmp.Or(cfg.Logger, hclog.NewNullLogger())
	cfg.Server.Tick = cmp.Or(cfg.Server.Tick, tick)
	cfg.Server.MaxSessionTimeout = cmp.Or(cfg.Server.MaxSessionTimeout, maxSessionTimeout)
	cfg.Server.MaxClientConns = cmp.Or(cfg.Server.MaxClientConns, -1)
	if cfg.Server.Words == nil {
		cfg.Server.Words = []string{"*"}
	}
	if cfg.InMemory {
		cfg.ClientPort = memoryPort
	}
	cfg.Host = cmp.Or(cfg.Host, "127.0.0.1")
	addresses := ensemble.Addresses(cfg.Host, cfg.ClientPort, cmp.Or(cfg.Members, 1))
	for i, port := range cfg.Ports {
		addresses[i] = net.JoinHostPort(cfg.Host, strconv.Itoa(port))
	}
	e, err := ensemble.New(cfg.Dir, addresses, cfg.InMemory, "--client-port, zktest.OnPort, or the ports of POST /servers")
	if err != nil {
		return nil, errorf(ErrState, "cluster: %w", err)
	}
	c := &Cluster{Ensemble: e, cfg: cfg, advancing: newChanMutex(), failures: make(chan error, 1)}
	for _, place := range e.Members {
		m := &Member{Member: place, cluster: c, clock: newClock(&c.offset), transition: newChanMutex()}
		m.run.Store(new(memberRun))
		if cfg.Dir == "" {
			m.memory = new(server.Memory)
		}
		c.members = append(c.members, m)
	}
	c.links.group = make([]int, len(c.members))
	if !cfg.Down {
		err = c.Start(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Start starts all members that are down at the same time, and returns when they serve. Members
// without data found an ensemble together: one alone would wait for the others.
func (c *Cluster) Start(ctx context.Context) error {
	for _, m := range c.members {
		if m.State() == Down {
			if err := m.launch(); err != nil {
				return err
			}
		}
	}
	return c.awaitServing(ctx, c.members...)
}

// Repair heals all links, resumes paused members, and starts those that are down.
func (c *Cluster) Repair(ctx context.Context) error {
	c.Heal()
	for _, m := range c.members {
		_ = m.Resume() // fails if the member is not paused
	}
	return c.Start(ctx)
}

// Stop stops all members that run and are not paused, at the same time.
func (c *Cluster) Stop() error {
	running := c.running()
	return errors.Join(parallel.Each(len(running), len(running), func(i int) error { return running[i].Stop() })...)
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
		return err
	})
	c.runs.Wait()
	c.Ensemble.Close()
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

// Members returns all members, in the order of their numbers.
func (c *Cluster) Members() []*Member { return slices.Clone(c.members) }

// Member returns the member with that number.
func (c *Cluster) Member(id int) (*Member, error) {
	if id < 1 || id > len(c.members) {
		return nil, errorf(ErrNotFound, "cluster: there is no member %d: they are numbered 1 to %d", id, len(c.members))
	}
	return c.members[id-1], nil
}

// Arm adds a fault for requests to any member.
func (c *Cluster) Arm(f faultproxy.Fault) (*faultproxy.Armed, error) { return c.rules.Add(f) }

// Disarm removes all faults.
func (c *Cluster) Disarm() { c.rules.Clear() }

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
	for {
		i, err := -1, error(nil)
		for k, m := range started { // one that fails may be why the others wait
			done, failed := c.hasStarted(m)
			if err = errors.Join(err, failed); !done {
				i = k
			}
		}
		if err != nil {
			return err
		}
		if i < 0 {
			break
		}
		if !backoff.Sleep(ctx, pollTime) {
			return fmt.Errorf("cluster: %s does not serve: %w", started[i].Name(), ctx.Err())
		}
	}
	for _, m := range c.majority() {
		if s := m.Server(); s != nil {
			err := c.whileServing(ctx, m, s, func(ctx context.Context, s *server.Server) error {
				// CatchUp makes sure that the leader knows this member's reports, such as that
				// the member had no data.
				return errors.Join(s.Ready(ctx), s.CatchUp(ctx))
			})
			if err != nil && c.serves(m, s) {
				return fmt.Errorf("cluster: %s: %w", m.Name(), err)
			}
		}
	}
	c.awaitVoters(ctx)
	return nil
}

// hasStarted reports whether a member has started, has been ended again, or cannot serve because it
// is outside the majority. The error is that of its start.
func (c *Cluster) hasStarted(m *Member) (bool, error) {
	run := m.run.Load()
	if run.server == nil {
		return true, nil
	}
	select {
	case <-run.started:
		if run.err != nil {
			return false, m.fail(run, "did not start", run.err)
		}
		return true, nil
	default:
		return !c.serves(m, run.server), nil
	}
}

// fail takes down a member whose server has failed, and returns what failed, why, and the error of
// that; nil if another goroutine ended the run.
func (m *Member) fail(run *memberRun, what string, cause error) error {
	m.transition.lock()
	defer m.transition.unlock()
	if m.run.Load() != run {
		return nil
	}
	return errors.Join(fmt.Errorf("cluster: %s %s: %w", m.Name(), what, cause), m.end(run.server.Abort))
}

func (c *Cluster) states() string {
	words := make([]string, len(c.members))
	for i, m := range c.members {
		words[i] = fmt.Sprintf("%s %s", m.Name(), m.State())
		if s := m.Server(); s != nil && m.State() == Running {
			if st := s.Status(); st.Mode != "" {
				words[i] += " as " + st.Mode
			}
		}
		if m.cut.Load() {
			words[i] += ", cut off"
		}
	}
	return strings.Join(words, ", ")
}

// chanMutex is a mutex for operations that may take long. Goroutines wait for it on a channel, so
// that time can pass in a synctest bubble meanwhile; a sync.Mutex would stop its clock.
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
