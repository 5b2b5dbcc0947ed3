package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/serverlist"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/session"
	"github.com/gozkd/gozkd/watch"
)

// Errors of Start.
var (
	// ErrClosed says that the server was closed.
	ErrClosed = errors.New("server: closed")
	// ErrStarted says that Start was called before.
	ErrStarted = errors.New("server: started already")
)

// Server is one ZooKeeper server. Its methods may be called from any goroutine.
type Server struct {
	cfg      Config                 // as the server was started with
	live     atomic.Pointer[Config] // as Reload left it; what is in it is not changed
	reload   sync.Mutex             // one Reload at a time
	node     *consensus.Node
	listener net.Listener             // nil: in process only
	addr     atomic.Pointer[net.Addr] // of listener
	started  time.Time                // by Config.Now
	begun    time.Time                // by the runtime's clock

	members serverlist.Set // Config.Members
	book    *addressBook

	tree    sync.RWMutex // guards state; see the package comment for the order of locks
	state   *datatree.Tree
	watches *watch.Table

	connMu    sync.Mutex
	conns     map[watch.ConnID]*conn
	bySession map[proto.SessionID]*conn
	left      map[proto.SessionID]time.Time // last heard from on a connection that is closed, until the leader was told
	perAddr   map[string]int
	nextConn  watch.ConnID
	closing   bool

	trackMu  sync.Mutex // guards these
	tracker  *session.Tracker
	ledSince time.Time // the reign for which the tracker was made ready. 0: this server does not lead
	jumped   time.Time // the last MoveClock; what was seen on the clock before that is too old to be told the tracker of a new client

	outstanding   limiter
	stats         stats
	slow          slowLog
	tallies       tallies
	countsAtReset atomic.Pointer[consensus.Counts] // what the node had counted then; nil: there was no reset
	hot           hot

	digests digests

	// Owned by the goroutine of Apply.
	tally          tally
	way            way
	foreign        datatree.Request // that is being applied and came from elsewhere
	spent          []*pending       // writes that were answered
	replied        []*conn          // touched by replies
	notified       []*conn          // touched by events
	watchers       []watch.ConnID
	reconfigs      map[proto.Zxid]*pending // by serial: clients that wait for a change of the ensemble
	membersChanged bool

	// Owned by the goroutine of runSessions.
	reported time.Time // what was heard before is told
	told     told

	life struct {
		sync.Mutex
		started, closed bool
		cancel          context.CancelFunc
		abort           context.CancelFunc // of a Start under way
		starting        chan struct{}      // closed when Start is over
		wg              sync.WaitGroup
		err             chan error
	}
	ended      chan struct{} // closed when the server stops, or stopped by itself
	gone       chan struct{} // closed when Close is done
	endOnce    sync.Once
	cause      atomic.Pointer[error] // why it stopped by itself
	accepting  atomic.Bool           // the node is there, and connections are taken
	serving    atomic.Bool
	cutOff     atomic.Bool  // no leader for too long: clients are turned away
	heardOf    atomic.Int64 // nanoseconds from started to when the leader last said that it hears this server
	configured atomic.Bool  // the state names the ensemble's members, or is about to
	reached    applyWaiters
	lastApply  atomic.Int64 // nanoseconds from started to the end of the last Apply
	capturing  atomic.Int64 // zxid of the checkpoint that is being written
	logRoom    int64        // what a backup leaves on the disk: without room for its log the server stops. Set before Start
	checkpoint atomic.Int64 // zxid of the last that is on disk
}

// New checks cfg and makes a server; nothing runs and no file is touched before Start.
func New(cfg Config) (*Server, error) {
	err := cfg.ensureDefaults()
	set, membersErr := cfg.parseMembers()
	if err := errors.Join(err, membersErr); err != nil {
		return nil, err
	}
	s := &Server{
		cfg:       cfg,
		members:   set,
		reconfigs: make(map[proto.Zxid]*pending),
		state:     datatree.New(datatree.Options{TrackDirty: cfg.Dir != ""}),
		watches:   watch.New(),
		conns:     make(map[watch.ConnID]*conn),
		bySession: make(map[proto.SessionID]*conn),
		left:      make(map[proto.SessionID]time.Time),
		perAddr:   make(map[string]int),
		tracker:   session.New(cfg.Tick),
	}
	s.live.Store(&cfg)
	s.life.err = make(chan error, 1)
	s.ended, s.gone = make(chan struct{}), make(chan struct{})
	s.digests.forget()
	s.outstanding.init(cfg.OutstandingLimit)
	s.slow.server = s
	s.stats.traceMask.Store(defaultTraceMask)
	return s, nil
}

// Start restores the state, opens the client port, and returns when clients are served. ctx bounds only the start. If it
// fails, the server is closed.
func (s *Server) Start(ctx context.Context) error {
	if err := s.mayStart(); err != nil {
		return err
	}
	ctx, abort := context.WithCancel(ctx)
	defer abort()
	over := make(chan struct{})
	s.life.abort, s.life.starting, s.life.started = abort, over, true
	s.life.Unlock() // Close need not wait until there is a leader
	err := s.start(ctx)
	close(over)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	return nil
}

// mayStart returns with the life locked if there is no error.
func (s *Server) mayStart() error {
	s.life.Lock()
	switch {
	case s.life.closed:
		s.life.Unlock()
		return ErrClosed
	case s.life.started:
		s.life.Unlock()
		return ErrStarted
	}
	return nil
}

func (s *Server) start(ctx context.Context) (err error) {
	s.started, s.begun = s.cfg.Now(), time.Now()
	defer func() {
		if err != nil && s.node == nil && s.cfg.PeerListener != nil {
			err = errors.Join(err, s.cfg.PeerListener.Close())
		}
	}()
	if s.listener = s.cfg.Listener; s.listener == nil && !s.cfg.InProcess {
		s.listener, err = (&net.ListenConfig{KeepAlive: keepAlive(s.cfg.ClientKeepAlive)}).Listen(ctx, "tcp", s.cfg.Listen)
		if err != nil {
			return fmt.Errorf("server: client port: %w", err)
		}
	}
	if s.listener != nil {
		addr := s.listener.Addr()
		s.addr.Store(&addr)
	}
	if err := s.checkDiverged(); err != nil {
		return err
	}
	peerListener, err := s.listenPeers()
	if err != nil {
		return err
	}
	s.removeBackups()
	s.logRoom = 2 * cmp.Or(s.cfg.SegmentBytes, 64<<20)
	opening := time.Now()
	s.node, err = consensus.Open(consensus.Config{
		ID: uint64(s.cfg.MemberID), Voters: s.members.Voters(), Learners: s.members.Observers(),
		PeerListener: peerListener, PeerDial: s.cfg.PeerDial, Tick: raftTick(s.cfg.Tick),
		FormTicks: s.cfg.InitLimit * int(s.cfg.Tick/raftTick(s.cfg.Tick)),
		OnMessage: s.received, OnSteered: s.steered, OnLost: s.lost, Rand: s.cfg.Rand,
		Dir: s.cfg.Dir, Memory: s.cfg.Memory, LogDir: s.cfg.LogDir, FS: s.cfg.FS, StateMachine: machine{s},
		Now: s.cfg.Now, CheckpointRequests: s.cfg.SnapCount, SegmentBytes: s.cfg.SegmentBytes, NoSync: s.cfg.NoSync,
		OnSync: s.synced, OnCheckpoint: s.checkpointed, OnReign: s.reigned, Logger: s.cfg.Logger.Named("consensus"),
	})
	if err != nil {
		return err
	}
	s.stats.opening.note(int64(time.Since(opening)), 1)
	if s.book, err = openBook(s.cfg.Dir, s.members); err != nil {
		return errors.Join(err, s.node.Close())
	}
	s.retarget()
	if !s.alone() {
		s.cfg.Logger.Info("joining the ensemble", "server", s.cfg.MemberID, "voters", s.members.Voters(), "observers", s.members.Observers(),
			"peer_address", peerListener.Addr().String(), "data", s.dataName())
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.life.cancel = cancel
	failed := make(chan error, 1)
	// Stopped by cancel, awaited by shutdown.
	s.life.wg.Go(func() {
		err := s.node.Run(run)
		if !errors.Is(err, consensus.ErrClosed) {
			failed <- err
			s.fail(err)
		}
	})
	s.accepting.Store(true)
	if s.listener != nil {
		s.life.wg.Go(func() { s.accept(run) }) // stopped by closing the listener, awaited by shutdown
	}
	if err := s.awaitLeader(ctx, failed); err != nil {
		return err
	}
	s.adoptSessions()
	s.serving.Store(true)
	s.reached.wake()
	s.life.wg.Go(func() { s.runSessions(run) })  // stopped by cancel, awaited by shutdown
	s.life.wg.Go(func() { s.runCollector(run) }) // stopped by cancel, awaited by shutdown
	f := s.facts()
	s.cfg.Logger.Info("serving clients", "address", s.ConnectString(), "data", s.dataName(), "mode", s.mode(),
		"znodes", f.znodes-1, "sessions", f.sessions, "zxid", f.zxid.String(),
		"start_ms", s.cfg.Now().Sub(s.started).Milliseconds())
	return nil
}

// raftTick is the unit of raft's timers: a fraction of ZooKeeper's tick, since elections shall not take several of them. Below
// 20 ms, which is an election timeout of 200 ms, a busy machine loses leaders that are well.
func raftTick(tick time.Duration) time.Duration {
	return min(max(tick/40, 20*time.Millisecond), 50*time.Millisecond)
}

func keepAlive(on bool) time.Duration {
	if on {
		return 0 // the runtime's default
	}
	return -1
}

func (s *Server) dataName() string {
	if s.cfg.Dir == "" {
		return "memory"
	}
	return s.cfg.Dir
}

// Err delivers at most one error: the reason why the server stopped by itself. It must still be closed.
func (s *Server) Err() <-chan error { return s.life.err }

// fail makes the server stop serving: what is not on disk must not be acknowledged.
func (s *Server) fail(err error) {
	s.serving.Store(false)
	s.cfg.Logger.Error("server stopped serving", "error", err)
	s.cause.CompareAndSwap(nil, &err)
	s.end()
	s.closeConns()
	select {
	case s.life.err <- err:
	default:
	}
}

// end lets go of those who wait for something that will not come any more.
func (s *Server) end() {
	s.endOnce.Do(func() { close(s.ended) })
	s.accepting.Store(false) // behind that, so that who finds it false knows why
}

// Close stops the server: no new connections, then the connections (their sessions live on), then the log. If it leads an
// ensemble it first passes the lead on. It returns when every goroutine has ended. Closing twice is harmless.
func (s *Server) Close() error { return s.stop(true) }

// Abort stops the server like Close, but as a crash would look to others: if it leads, nobody is told.
func (s *Server) Abort() error { return s.stop(false) }

func (s *Server) stop(handOver bool) error {
	s.life.Lock()
	if starting := s.life.starting; starting != nil {
		s.life.abort()
		s.life.Unlock()
		<-starting
		s.life.Lock()
	}
	first := !s.life.closed
	s.life.closed = true
	s.life.Unlock() // who waits for a lock keeps time from passing in a bubble, and the shutdown may wait for that
	if !first {
		<-s.gone
		return nil
	}
	defer close(s.gone)
	return s.shutdown(handOver)
}

func (s *Server) shutdown(handOver bool) (err error) {
	s.end()
	if s.serving.Swap(false) && handOver && s.node.Status().Leading {
		// The others go on at once instead of after an election timeout.
		ctx, cancel := context.WithTimeout(context.Background(), s.cfg.Tick)
		s.node.HandOver(ctx)
		cancel()
	}
	if !s.life.started {
		err = closeUnused(s.cfg.Listener, s.cfg.PeerListener)
	}
	if s.listener != nil {
		err = s.listener.Close()
	}
	s.closeConns()
	switch {
	case s.life.cancel != nil:
		s.life.cancel()
	case s.node != nil:
		err = errors.Join(err, s.node.Close())
	}
	s.life.wg.Wait()
	return err
}

// closeUnused closes what a server was given and did not come to use.
func closeUnused(listeners ...net.Listener) error {
	var errs []error
	for _, l := range listeners {
		if l != nil {
			errs = append(errs, l.Close())
		}
	}
	return errors.Join(errs...)
}

// closeConns closes every connection and lets no new one in.
func (s *Server) closeConns() {
	s.connMu.Lock()
	s.closing = true
	conns := make([]*conn, 0, len(s.conns))
	for _, c := range s.conns {
		conns = append(conns, c)
	}
	s.connMu.Unlock()
	for _, c := range conns {
		c.close()
	}
	s.outstanding.close()
}

func (s *Server) synced(took time.Duration, appends, bytes int) {
	s.stats.syncs.note(int64(took), 1)
	s.stats.appends.note(int64(appends), 1)
	if took > s.live.Load().SyncWarning {
		s.stats.slowSyncs.Add(1)
		s.cfg.Logger.Warn("slow fsync: the log's disk is overloaded, writes wait for it", "took_ms", took.Milliseconds(), "bytes", bytes)
	}
}

func (s *Server) checkpointed(took time.Duration, changes int) {
	s.stats.checkpoints.note(int64(took), 1)
	s.checkpoint.Store(s.capturing.Load())
	s.cfg.Logger.Info("checkpoint", "changes", changes, "took_ms", took.Milliseconds())
}
