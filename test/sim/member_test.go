package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/internal/accept"
	"github.com/gozkd/gozkd/internal/confighook"
	"github.com/gozkd/gozkd/server"
)

// tick is the servers' tickTime. Raft's tick is 50 ms, its election timeout 500 ms to 1 s.
const (
	tick            = 2 * time.Second
	electionTimeout = 500 * time.Millisecond
	syncLimit       = 2 // ticks
	dataDir         = "/data"
)

// member is a server of the ensemble with its disk and clock. Only the goroutine of the nemesis
// uses the fields that have no lock of their own.
type member struct {
	w          *world
	id         int
	home       role     // of the member in the beginning, and in the end
	lines      []string // of the configuration, which nobody edits when members change
	disk       *disk
	clock      *clock
	room       room
	standstill atomic.Pointer[standstill] // that the operations of the member count for

	// Other goroutines read these with world.mu.
	role   role // as far as is known
	unsure bool // a reconfig may have changed the role

	clientPort           int   // that the member's line should have
	peerPort, formerPort int   // for other members; formerPort: is open, too, unless it is 0
	changedAt            int64 // zxid of the last reconfig of this member

	starts int
	life   *life // nil: down
	// fault is the fault that the member suffers, "" for none.
	fault string
	// doubtful: the directory was emptied or rolled back, and the member has not been let in yet.
	doubtful bool
	ending   sync.WaitGroup // of lives that were ended
}

// life is one process.
type life struct {
	s       *server.Server
	fs      *processFS
	peers   *accept.Joined // the port for other members
	dead    atomic.Bool
	serving atomic.Bool
	failed  atomic.Pointer[error] // of Start
	cancel  context.CancelFunc
	started sync.WaitGroup
}

func (m *member) host() string { return fmt.Sprintf("m%d", m.id) }

// line returns the member's server line, as a voter if the member is none now.
func (m *member) line() string { return m.lineAs(max(m.role, m.home, observer)) }

// lineAs returns the server line in a role, or "" if the member is to be none.
func (m *member) lineAs(r role) string {
	if r == outside {
		return ""
	}
	text := map[role]string{observer: "observer", voter: "participant"}[r]
	return fmt.Sprintf("server.%d=%s:3888:%s;%s", m.id, m.peerAddress(), text, m.clientAddressAt(m.clientPort))
}

func (m *member) peerAddress() string { return fmt.Sprintf("%s:%d", m.host(), m.peerPort) }

// configuredAddress returns the address for other members in the member's own configuration.
func (m *member) configuredAddress() string {
	for _, line := range m.lines {
		if rest, own := strings.CutPrefix(line, fmt.Sprintf("server.%d=", m.id)); own {
			address, _, _ := strings.Cut(rest, ":3888:")
			return address
		}
	}
	return m.peerAddress()
}

// The port for clients is one of two, and the first one in the beginning and in the end.
const firstClientPort, secondClientPort = 2181, 2182

func (m *member) clientAddressAt(port int) string { return fmt.Sprintf("%s:%d", m.host(), port) }

// clientAddress returns where clients look for the member first.
func (m *member) clientAddress() string { return m.clientAddressAt(firstClientPort) }

// start starts the member unless it runs.
func (m *member) start() {
	if m.life != nil {
		return
	}
	m.ending.Wait()
	m.starts++
	l := &life{peers: accept.NewJoined("|")}
	at := []string{m.peerAddress()}
	if m.formerPort != 0 {
		at = slices.Insert(at, 0, fmt.Sprintf("%s:%d", m.host(), m.formerPort))
	}
	if configured := m.configuredAddress(); m.role == outside && !slices.Contains(at, configured) {
		at = append(at, configured) // a server that was removed is where its configuration says
	}
	for _, address := range at {
		_ = l.peers.Add(m.w.listen(address)) // fails after Close only
	}
	process, disk := m.disk.open(m.count)
	l.fs = process
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	cfg := server.Config{
		MemberID: uint8(m.id), Members: m.lines, Dir: dataDir,
		Tick: tick, SyncLimit: syncLimit, MinSessionTimeout: tick, MaxSessionTimeout: time.Minute, MaxClientConns: -1,
		LocalSessions: m.w.plan.modes.local, LocalSessionUpgrades: true, ReadOnlyMode: m.w.plan.modes.readOnly,
		RelayedObservers: m.w.plan.modes.relays,
		SnapCount:        m.w.plan.snapCount, SegmentBytes: diskReserve / 2, Words: []string{"*"},
		Listen: m.clientAddress(), PeerListener: l.peers,
		ReconfigEnabled: true, SuperDigest: operatorDigest, PeerSecret: m.w.plan.modes.peerSecret(),
		PeerDial: func(ctx context.Context, address string) (net.Conn, error) {
			if l.dead.Load() {
				return nil, net.ErrClosed
			}
			c, err := m.w.network.Dial(ctx, m.host(), address)
			if err != nil {
				return nil, err
			}
			return &peerConn{Conn: c, w: m.w, from: m.id}, nil
		},
		Now: m.clock.now, Logger: m.w.logs.Named(m.host()),
		Rand: rand.NewChaCha8([32]byte{byte(m.id), byte(m.starts), byte(m.starts >> 8), byte(m.w.plan.seed), byte(m.w.plan.seed >> 8)}),
	}
	confighook.Of(&cfg).LogFS, confighook.Of(&cfg).DataFS = disk, disk
	confighook.Of(&cfg).Listen = func(address string) (net.Listener, error) {
		if l.dead.Load() {
			return nil, net.ErrClosed
		}
		return m.w.network.Listen(address)
	}
	if m.w.plan.standstills {
		confighook.Of(&cfg).Memory = fewEntries
	}
	if m.w.plan.modes.reserve {
		cfg.DiskReserve = diskReserve
	}
	m.room.configure(&cfg, confighook.Of(&cfg))
	s, err := server.New(cfg)
	if err != nil {
		panic(err) // the configuration is the same for every run
	}
	l.s = s
	m.life = l
	// Ends when the server serves or is ended; end waits for it.
	l.started.Go(func() {
		err := s.Start(ctx)
		if err != nil && !l.dead.Load() {
			l.failed.Store(&err)
		}
		l.serving.Store(err == nil)
	})
}

// stop closes the server in an orderly way.
func (m *member) stop() {
	if l := m.life; l != nil {
		m.end(func() error { return l.s.Close() })
	}
}

// kill ends the process as kill -9 does: what it wrote stays in the page cache.
func (m *member) kill() { m.die(func() {}) }

// powerLoss ends the process, and loses or tears what it did not sync.
func (m *member) powerLoss() { m.die(func() { m.disk.powerLoss(m.w.rng) }) }

func (m *member) die(disk func()) {
	l := m.life
	if l == nil {
		disk()
		return
	}
	l.dead.Store(true)
	m.w.network.Kill(m.host())
	l.fs.kill()
	disk()
	m.clock.set(func(c *clock) { c.paused = false })
	m.end(func() error {
		_ = l.s.Abort() // its disk and its network are gone
		return nil
	})
}

// end closes the server, in the background if it takes long.
func (m *member) end(closeServer func() error) {
	l := m.life
	m.life = nil
	done := make(chan struct{})
	m.ending.Go(func() { // ends when the server is closed; start and the end of the run wait for it
		defer close(done)
		l.cancel()
		l.started.Wait()
		if err := closeServer(); err != nil && l.problem() == nil {
			m.w.complain("member %d: close: %v", m.id, err)
		}
	})
	select {
	case <-done:
	case <-time.After(5 * tick):
	}
}

// problem returns why the process is of no use any more, or nil.
func (l *life) problem() error {
	if err := l.failed.Load(); err != nil {
		return *err
	}
	return l.s.Failed()
}

// up reports whether the process runs, as far as the outside can see.
func (m *member) up() bool {
	return m.life != nil && m.life.problem() == nil && !m.doubtful
}

// status returns what the server says about itself; zero while it is down.
func (m *member) status() server.Status {
	if !m.up() && !m.doubtful || m.life == nil {
		return server.Status{}
	}
	return m.life.s.Status()
}

// peerConn is a connection to another member, on which a byte may be damaged.
type peerConn struct {
	net.Conn
	w    *world
	from int
}

// Write damages a bit if the nemesis has asked for it.
func (c *peerConn) Write(b []byte) (int, error) { return c.Conn.Write(c.damaged(b)) }

// TryWrite is for frames that members write on their main loop, as they do to a socket.
func (c *peerConn) TryWrite(b []byte) (int, error) {
	return c.Conn.(interface {
		TryWrite(b []byte) (int, error)
	}).TryWrite(c.damaged(b))
}

func (c *peerConn) damaged(b []byte) []byte {
	c.w.members[c.from-1].count("")
	if at := c.w.damage[c.from].Swap(0); at != 0 && len(b) > 0 {
		b = append([]byte(nil), b...)
		b[int(at)%len(b)] ^= 1 << (at % 8)
	}
	return b
}
