package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"

	"github.com/gozkd/gozkd/internal/confighook"
	"github.com/gozkd/gozkd/internal/ensemble"
	"github.com/gozkd/gozkd/internal/faultproxy"
	"github.com/gozkd/gozkd/server"
)

// MemberState is the state of a member.
type MemberState string

// The states of a member.
const (
	Running MemberState = "running"
	Paused  MemberState = "paused"
	Down    MemberState = "down" // stopped or killed
)

// Member is a server of a cluster, across restarts. Its methods may be called from any goroutine.
type Member struct {
	*ensemble.Member
	cluster *Cluster
	memory  *server.Memory // nil: the data is in a directory

	transition chanMutex // held while the fields below change
	clock      *clock
	cut        atomic.Bool               // by Partition
	run        atomic.Pointer[memberRun] // the zero run: the member is down
}

type memberRun struct {
	server  *server.Server
	gate    *faultproxy.Gate // nil: the member is down
	started chan struct{}    // closed when Start has returned
	err     error            // the error of Start, set before started is closed
	gone    chan struct{}    // closed when the run ends
	paused  atomic.Bool
	dead    atomic.Bool // what the process would send is lost
}

// State returns the state of the member.
func (m *Member) State() MemberState {
	switch run := m.run.Load(); {
	case run.server == nil:
		return Down
	case run.paused.Load():
		return Paused
	}
	return Running
}

// Server returns the member's server, or nil if the member is down.
func (m *Member) Server() *server.Server { return m.run.Load().server }

// Start starts a member that is down. With a majority running, Start returns when all of the
// majority serve, this member included, and gives members that are being admitted a moment to
// become voters. Without a majority it returns at once.
func (m *Member) Start(ctx context.Context) error {
	if err := m.launch(); err != nil {
		return err
	}
	return m.cluster.awaitServing(ctx, m)
}

func (m *Member) launch() error {
	m.transition.lock()
	defer m.transition.unlock()
	return m.begin()
}

// begin is launch for a caller that holds m.transition.
func (m *Member) begin() error {
	switch {
	case m.State() != Down:
		return errorf(ErrState, "cluster: %s is %s already", m.Name(), m.State())
	case m.cluster.closed.Load():
		return errClosed
	}
	clients, peers, err := m.Listen()
	if err != nil {
		return fmt.Errorf("cluster: %s: %w", m.Name(), err)
	}
	run := &memberRun{
		gate: faultproxy.NewGate(clients, &m.cluster.rules), started: make(chan struct{}), gone: make(chan struct{}),
	}
	run.gate.Cut(m.cut.Load())
	if run.server, err = server.New(m.config(run, peers)); err != nil {
		if peers != nil {
			err = errors.Join(err, peers.Close())
		}
		return errors.Join(err, run.gate.Close())
	}
	m.run.Store(run)
	// Ends with the run; Cluster.Close waits for it.
	m.cluster.runs.Go(func() {
		run.err = run.server.Start(context.Background())
		close(run.started)
		if run.err != nil { // awaitStart takes the member down
			<-run.gone
			return
		}
		select {
		case err := <-run.server.Err():
			if err = m.fail(run, "stopped by itself", err); err != nil {
				select {
				case m.cluster.failures <- err:
				default: // an error has been reported already
				}
			}
		case <-run.gone:
		}
	})
	return nil
}

func (m *Member) config(run *memberRun, peers net.Listener) server.Config {
	c := m.cluster
	cfg := c.cfg.Server
	cfg.MemberID, cfg.Listener, cfg.InProcess, cfg.Members = uint8(m.ID()), run.gate, false, c.Lines()
	cfg.Dir, cfg.LogDir, cfg.Memory = m.Dir(), m.Own(cfg.LogDir), m.memory
	cfg.Now, cfg.Logger, confighook.Of(&cfg).Attached = m.clock.now, c.cfg.Logger, faultproxy.Attach
	if peers != nil {
		cfg.Logger, cfg.PeerListener = c.cfg.Logger.Named(m.Host()), peers
		cfg.PeerDial = func(ctx context.Context, address string) (net.Conn, error) {
			if run.dead.Load() {
				return nil, net.ErrClosed
			}
			return m.DialPeer(ctx, address)
		}
	}
	if c.cfg.Adapt != nil {
		c.cfg.Adapt(m.ID(), &cfg)
	}
	return cfg
}

// Stop closes the server: a leader hands over its lead, then its clients' connections close.
func (m *Member) Stop() error {
	return m.whenIn(func() error { return m.end(m.Server().Close) }, Running)
}

// Kill ends the member's server like kill -9: connections break without notice. Data that the
// server acknowledged is there after the next start. A paused member can be killed too.
func (m *Member) Kill() error { return m.whenIn(m.kill, Running, Paused) }

func (m *Member) kill() error {
	run := m.run.Load()
	run.dead.Store(true)
	run.gate.CloseConns()
	if len(m.cluster.members) > 1 {
		m.cluster.Network.Kill(m.Host())
	}
	return m.end(run.server.Abort)
}

func (m *Member) end(how func() error) error {
	before := m.run.Swap(new(memberRun))
	close(before.gone)
	m.clock.set(false)
	err := how()
	<-before.started
	if before.paused.Load() {
		m.cluster.relink()
	}
	m.Hold()
	return err
}

// Restart stops a running member or kills a paused member, and starts it again.
func (m *Member) Restart(ctx context.Context) error {
	if err := m.again(); err != nil {
		return err
	}
	return m.cluster.awaitServing(ctx, m)
}

// again ends the present run and begins the next. No other goroutine can begin a run in between.
func (m *Member) again() (err error) {
	m.transition.lock()
	defer m.transition.unlock()
	switch m.State() {
	case Running:
		err = m.end(m.Server().Close)
	case Paused:
		err = m.kill()
	}
	if err != nil {
		return err
	}
	return m.begin()
}

// Pause stops the member like kill -STOP or a long garbage collection: the member answers nothing
// and notices nothing until Resume.
func (m *Member) Pause() error {
	return m.whenIn(func() error {
		m.cluster.jumping.Lock()
		m.run.Load().paused.Store(true)
		m.clock.set(true)
		m.cluster.jumping.Unlock()
		m.cluster.relink()
		return nil
	}, Running)
}

// Resume continues a paused member.
func (m *Member) Resume() error {
	return m.whenIn(func() error {
		m.run.Load().paused.Store(false)
		m.cluster.relink()
		m.clock.set(false)
		return nil
	}, Paused)
}

// Partition cuts the member off from its clients and all other members. Messages are held back, and
// no connection breaks, until Heal.
func (m *Member) Partition() error { return m.partition(true) }

// Heal ends Partition of this member.
func (m *Member) Heal() error { return m.partition(false) }

func (m *Member) partition(cut bool) error {
	m.transition.lock()
	defer m.transition.unlock()
	m.cut.Store(cut)
	if gate := m.run.Load().gate; gate != nil {
		gate.Cut(cut)
	}
	m.cluster.relink()
	return nil
}

// CloseConnections breaks the connections of all clients of the member. Their sessions live on.
func (m *Member) CloseConnections() error {
	return m.whenIn(func() error {
		m.run.Load().gate.CloseConns()
		return nil
	}, Running, Paused)
}

// whenIn calls f if the member is in one of the states, which only f can then change.
func (m *Member) whenIn(f func() error, states ...MemberState) error {
	m.transition.lock()
	defer m.transition.unlock()
	if s := m.State(); !slices.Contains(states, s) {
		return errorf(ErrState, "cluster: %s is %s, not %s", m.Name(), s, states[0])
	}
	return f()
}
