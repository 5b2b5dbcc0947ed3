package server_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/internal/memnet"
	"github.com/gozkd/gozkd/internal/tcpport"
	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/internal/testkit/logbuf"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/server"
)

// ensemble is a few servers in this process, and the network between them and their clients.
type ensemble struct {
	t         testing.TB
	network   *memnet.Network // nil: loopback
	members   []*ensembleMember
	logs      hclog.Logger
	said      logbuf.Buffer // by logs
	clients   int
	begun     time.Time
	pipesMade int
	patience  time.Duration // of Start
}

// ensembleMember is one server of an ensemble, which may be down.
type ensembleMember struct {
	e      *ensemble
	id     int
	starts int
	line   string
	dir    string // empty: in memory
	adapt  func(*server.Config)

	s                          *server.Server // nil: down
	dead                       *atomic.Bool   // s was killed
	serving                    atomic.Bool
	ending                     sync.WaitGroup // of servers that were killed
	clock                      pausedClock
	peerAddress, clientAddress string
	peerPort, clientPort       *tcpport.Port // nil: not on loopback
}

// withEnsemble runs f with n servers that are not started yet, in a bubble of time.
func withEnsemble(t *testing.T, n int, f func(t *testing.T, e *ensemble)) {
	t.Helper()
	cryptotest.SetGlobalRandom(t, 1) // raft draws its timeouts from there
	synctest.Test(t, func(t *testing.T) {
		f(t, newEnsemble(t, n, newNetwork()))
	})
}

// withNumbers runs f with servers that are numbered from 1 and, in make exhaustive, with servers
// that are numbered from 0. make test has TestEnsemble_NumbersFromZero.
func withNumbers(t *testing.T, n int, f func(t *testing.T, e *ensemble)) {
	t.Helper()
	t.Run("from 1", func(t *testing.T) { withEnsemble(t, n, f) })
	t.Run("from 0", func(t *testing.T) {
		exhaustive.Only(t)
		withZero(t, n, f)
	})
}

// withZero runs f with servers that are numbered from 0.
func withZero(t *testing.T, n int, f func(t *testing.T, e *ensemble)) {
	t.Helper()
	withEnsemble(t, n-1, func(t *testing.T, e *ensemble) {
		e.members = slices.Insert(e.members, 0, e.newMember(memberid.Zero))
		f(t, e)
	})
}

// newNetwork makes a network for a synctest bubble. It has latency, because clients that are always
// busy would otherwise keep time from advancing.
func newNetwork() *memnet.Network { return memnet.New(200 * time.Microsecond) }

// newEnsemble makes an ensemble that ends with the test.
func newEnsemble(t testing.TB, n int, network *memnet.Network) *ensemble {
	e := &ensemble{t: t, network: network, begun: time.Now(), patience: 5 * time.Minute}
	e.logs = hclog.New(&hclog.LoggerOptions{Output: io.MultiWriter(t.Output(), &e.said), Level: hclog.Info, TimeFormat: "05.000"})
	for id := 1; id <= n; id++ {
		e.members = append(e.members, e.newMember(id))
	}
	t.Cleanup(func() {
		for _, m := range e.members {
			m.clock.resume()
			m.stop()
			m.ending.Wait()
		}
	})
	return e
}

// newMember makes a member that is not in the configuration of the earlier ones. Server 0 has the
// id memberid.Zero.
func (e *ensemble) newMember(id int) *ensembleMember {
	e.t.Helper()
	m := &ensembleMember{e: e, id: id}
	m.peerAddress, m.clientAddress = fmt.Sprintf("m%d:2888", id), fmt.Sprintf("m%d:2181", id)
	if e.network == nil {
		m.peerPort, m.clientPort = reservePort(e.t), reservePort(e.t)
		m.peerAddress, m.clientAddress = m.peerPort.Address(), m.clientPort.Address()
	}
	host, port, _ := net.SplitHostPort(m.peerAddress)
	_, client, _ := net.SplitHostPort(m.clientAddress)
	m.line = fmt.Sprintf("server.%d=%s:%s:3888:participant;%s:%s", memberid.Number(id), host, port, host, client)
	return m
}

// reservePort reserves a port of the loopback until the test ends.
func reservePort(t testing.TB) *tcpport.Port { return reservePortAt(t, "127.0.0.1:0") }

func reservePortAt(t testing.TB, address string) *tcpport.Port {
	t.Helper()
	p, err := tcpport.Reserve(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Release)
	return p
}

// m returns the member with that id.
func (e *ensemble) m(id int) *ensembleMember {
	return e.members[slices.IndexFunc(e.members, func(m *ensembleMember) bool { return m.id == id })]
}

// onDisk gives all members data directories.
func (e *ensemble) onDisk() {
	for _, m := range e.members {
		m.dir = e.t.TempDir()
	}
}

// each changes the configuration of all members, from their next start on.
func (e *ensemble) each(adapt func(*server.Config)) {
	for _, m := range e.members {
		m.adapt = adapt
	}
}

func (e *ensemble) lines() (lines []string) {
	for _, m := range e.members {
		lines = append(lines, m.line)
	}
	return lines
}

func (m *ensembleMember) host() string { return fmt.Sprintf("m%d", m.id) }

// config returns the member's configuration: a tick of a second, and the changes that adapt makes.
func (m *ensembleMember) config(lines []string) server.Config {
	e := m.e
	m.starts++
	cfg := server.Config{
		MemberID: uint8(m.id), Members: lines, Dir: m.dir, Tick: time.Second, MinSessionTimeout: time.Second, MaxSessionTimeout: time.Hour,
		MaxClientConns: -1, Words: []string{"*"}, ReconfigEnabled: true, Now: m.clock.now, Logger: e.logs.Named(m.host()),
		Rand: rand.NewChaCha8([32]byte{byte(m.id), byte(m.starts), byte(m.starts >> 8)}), // by which members distinguish restarts
	}
	if m.adapt != nil {
		m.adapt(&cfg)
	}
	if e.network != nil {
		dead := new(atomic.Bool)
		m.dead = dead
		cfg.Listener, cfg.PeerListener = e.listen(m.clientAddress), e.listen(m.peerAddress)
		cfg.PeerDial = func(ctx context.Context, address string) (net.Conn, error) {
			if dead.Load() {
				return nil, net.ErrClosed
			}
			return e.network.Dial(ctx, m.host(), address)
		}
	} else {
		m.clientPort.Yield()
		m.peerPort.Yield()
		cfg.Listen = m.clientAddress
	}
	return cfg
}

func (e *ensemble) listen(address string) net.Listener {
	e.t.Helper()
	l, err := e.network.Listen(address)
	if err != nil {
		e.t.Fatal(err)
	}
	return l
}

// begin starts the member, and returns a function that waits until it serves.
func (m *ensembleMember) begin(lines []string) (served func() error) {
	m.e.t.Helper()
	if m.s != nil {
		m.e.t.Fatalf("member %d runs already", m.id)
	}
	m.ending.Wait()
	s, err := server.New(m.config(lines))
	if err != nil {
		m.e.t.Fatal(err)
	}
	m.s = s
	result := make(chan error, 1) // so that nobody needs to ask
	// Ends when the server serves, or is stopped with the test.
	ctx, cancel := context.WithTimeout(context.Background(), m.e.patience)
	m.ending.Go(func() {
		defer cancel()
		err := s.Start(ctx)
		m.serving.Store(err == nil)
		result <- err
	})
	return func() error { return <-result }
}

// start starts members and returns when they serve.
func (e *ensemble) start(ids ...int) {
	e.t.Helper()
	var serve []func() error
	for _, id := range ids {
		serve = append(serve, e.m(id).begin(e.lines()))
	}
	for i, served := range serve {
		if err := served(); err != nil {
			e.t.Fatalf("member %d: %v", ids[i], err)
		}
	}
}

// startWith starts members with lines of their own.
func (e *ensemble) startWith(lines []string, members ...*ensembleMember) {
	e.t.Helper()
	var serve []func() error
	for _, m := range members {
		serve = append(serve, m.begin(lines))
	}
	for i, served := range serve {
		if err := served(); err != nil {
			e.t.Fatalf("member %d: %v", members[i].id, err)
		}
	}
}

// startAll starts all members.
func (e *ensemble) startAll() {
	e.t.Helper()
	ids := make([]int, len(e.members))
	for i := range ids {
		ids[i] = e.members[i].id
	}
	e.start(ids...)
}

// stop closes the member's server in an orderly way.
func (m *ensembleMember) stop() {
	m.e.t.Helper()
	if m.s == nil {
		return
	}
	m.serving.Store(false)
	if err := m.s.Close(); err != nil {
		m.e.t.Errorf("member %d: %v", m.id, err)
	}
	m.s = nil
}

// kill makes the server unreachable at once: its connections break and its ports are closed.
// Nothing that it sends afterwards arrives.
func (m *ensembleMember) kill() {
	m.e.t.Helper()
	s := m.s
	m.s = nil
	m.serving.Store(false)
	m.dead.Store(true)
	m.e.network.Kill(m.host())
	m.ending.Go(func() { // ends when the server is closed; begin and the test's end wait for it
		if err := s.Close(); err != nil {
			m.e.t.Errorf("member %d: %v", m.id, err)
		}
	})
}

// isolate cuts the links between a member and the other members, or restores them. Its clients
// still reach it.
func (m *ensembleMember) isolate(on bool) {
	m.mute(on)
	m.deafen(on)
}

// mute cuts the member's messages to the others, deafen their messages to it.
func (m *ensembleMember) mute(on bool) {
	m.others(func(other string) { m.e.network.Cut(m.host(), other, on) })
}

func (m *ensembleMember) deafen(on bool) {
	m.others(func(other string) { m.e.network.Cut(other, m.host(), on) })
}

// slow adds latency between the member and the others.
func (m *ensembleMember) slow(on bool, d time.Duration) {
	if !on {
		d = 0
	}
	m.others(func(other string) {
		m.e.network.Delay(m.host(), other, d)
		m.e.network.Delay(other, m.host(), d)
	})
}

func (m *ensembleMember) others(f func(host string)) {
	for _, other := range m.e.members {
		if other != m {
			f(other.host())
		}
	}
}

// pause pauses the member's process, or resumes it.
func (m *ensembleMember) pause(on bool) {
	if on {
		m.clock.pause()
	} else {
		m.clock.resume()
	}
}

// pausedClock is a clock that blocks its readers while the server is paused. Nothing that a server
// does goes without reading the clock. Its sockets still accept data.
type pausedClock struct {
	mu      sync.Mutex
	paused  bool
	waiting []chan struct{} // each closed when its reader may go on
}

func (c *pausedClock) now() time.Time {
	c.mu.Lock()
	if !c.paused {
		c.mu.Unlock()
		return time.Now()
	}
	goOn := make(chan struct{})
	c.waiting = append(c.waiting, goOn)
	c.mu.Unlock()
	<-goOn
	return time.Now()
}

func (c *pausedClock) pause() {
	c.mu.Lock()
	c.paused = true
	c.mu.Unlock()
}

// resume lets the server go on. The goroutines that waited get the processor one after the other,
// and those first that came last.
func (c *pausedClock) resume() {
	c.mu.Lock()
	waiting := c.waiting
	c.waiting, c.paused = nil, false
	c.mu.Unlock()
	for _, goOn := range slices.Backward(waiting) {
		close(goOn)
		time.Sleep(time.Millisecond)
	}
}

// becomes reports whether condition becomes true within a minute: of the bubble, or, on loopback,
// of a machine without other load.
func (e *ensemble) becomes(condition func() bool) bool {
	e.t.Helper()
	if condition() {
		return true
	}
	var late <-chan struct{} // nil: in a bubble
	if e.network == nil {
		late = watchdog.After(e.t, time.Minute)
	}
	for n := 0; n < 6000 || late != nil; n++ {
		select {
		case <-late:
			return false
		default:
			time.Sleep(10 * time.Millisecond)
		}
		if condition() {
			return true
		}
	}
	return false
}

// leader waits until there is a leader and all running members know it, and returns its id.
func (e *ensemble) leader() (id int) {
	e.t.Helper()
	if !e.becomes(func() bool {
		var leaders, running []int
		for _, m := range e.members {
			if !m.serving.Load() {
				continue
			}
			running = append(running, m.id)
			if leader := server.LeaderOf(m.s); leader != 0 && !slices.Contains(leaders, leader) {
				leaders = append(leaders, leader)
			} else if leader == 0 {
				leaders = append(leaders, 0)
			}
		}
		if len(leaders) != 1 || leaders[0] == 0 {
			return false
		}
		id = leaders[0]
		return slices.Contains(running, id)
	}) {
		e.t.Fatal("no leader in a minute")
	}
	return id
}

// awaitVoters waits until the leader's raft has exactly these voters and all of them are in step.
func (e *ensemble) awaitVoters(ids ...uint64) {
	e.t.Helper()
	var voters []uint64
	var learners []uint64
	if !e.becomes(func() bool {
		st := server.StatusOf(e.m(e.leader()).s)
		voters, learners = st.Voters, st.Learners
		inStep := 1
		for _, p := range st.Peers {
			if p.InStep && p.Active && slices.Contains(ids, p.ID) {
				inStep++
			}
		}
		return slices.Equal(slices.Sorted(slices.Values(voters)), ids) && inStep == len(ids)
	}) {
		e.t.Fatalf("voters %v, learners %v after a minute, want voters %v", voters, learners, ids)
	}
}

// followers returns the ids of all members except the leader.
func (e *ensemble) followers() (ids []int) {
	leader := e.leader()
	for _, m := range e.members {
		if m.id != leader {
			ids = append(ids, m.id)
		}
	}
	return ids
}

// dial connects to a member, from a host of its own.
func (e *ensemble) dial(id int) *raw {
	e.t.Helper()
	e.clients++
	nc, err := e.dialFrom(fmt.Sprintf("c%d", e.clients), id)
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { _ = nc.Close() })
	return &raw{t: e.t, nc: nc}
}

func (e *ensemble) dialFrom(host string, id int) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if e.network == nil {
		return new(net.Dialer).DialContext(ctx, "tcp", e.m(id).clientAddress)
	}
	return e.network.Dial(ctx, host, e.m(id).clientAddress)
}

// connect makes a session on a member.
func (e *ensemble) connect(id int, timeout time.Duration) *raw {
	e.t.Helper()
	r := e.dial(id)
	r.connect(int32(timeout.Milliseconds()), 0, nil)
	return r
}
