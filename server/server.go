package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/audit"
	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/fair"
	"github.com/gozkd/gozkd/internal/lograte"
	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/internal/memlimit"
	"github.com/gozkd/gozkd/internal/standstill"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/facts"
	"github.com/gozkd/gozkd/server/identity"
	"github.com/gozkd/gozkd/server/internal/bounds"
	"github.com/gozkd/gozkd/server/internal/endings"
	"github.com/gozkd/gozkd/server/internal/lifecycle"
	"github.com/gozkd/gozkd/server/internal/liveness"
	"github.com/gozkd/gozkd/server/internal/meter"
	"github.com/gozkd/gozkd/server/internal/trail"
)

// Errors of Start.
var (
	// ErrClosed means that the server was closed.
	ErrClosed = lifecycle.ErrClosed
	// ErrStarted means that Start was called before.
	ErrStarted = lifecycle.ErrStarted
)

// Server is a ZooKeeper server. Its methods may be called from any goroutine.
type Server struct {
	*shared
	reloading  sync.Mutex        // held during Reload, and while start sets the same fields
	standstill *standstill.Watch // of this process; noted from Start on

	ports      serverPorts
	strangers  strangers
	conns      connTable
	sessions   *sessions
	leader     *leadership
	lines      *serverLines
	writes     bounds.Writes
	refusals   bounds.Refusals
	trail      trail.Trail
	identities identity.Authority
	facts      *Facts
	configured struct {
		begun atomic.Bool // the state names the ensemble's members, or is about to
		done  atomic.Bool // it names them
	}
	backups Backups
	growth  *growth
}

// New checks cfg and makes a server. Before Start, nothing runs and no file is touched.
func New(cfg Config) (*Server, error) {
	set, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	slow := cfg.Logger // the lines of slow requests have a limit of their own
	cfg.Logger = lograte.New(cfg.Logger)
	s := &Server{shared: &shared{cfg: &cfg, members: set}, growth: new(growth)}
	s.backups.shared = s.shared
	s.state.init(&cfg, s.life.Serving.Load)
	s.live.Store(&cfg)
	s.identities.Set(cfg.identities())
	s.identities.Init(identity.Hooks{
		Granted: s.state.rootGrants,
		Failed:  func() { s.meter.Count(meter.AuthFailed) },
	})
	s.life.Init()
	s.conns.init(s)
	s.strangers.claims = fair.NewRate(failedClaimsPer/failedClaims, failedClaims, maxClaimants)
	s.standstill = standstill.New(max(cfg.Tick, time.Second))
	s.strangers.words.init()
	s.ports.init(s.shared)
	s.sessions = &sessions{
		shared: s.shared, conns: &s.conns, audit: s.Audit, expiry: liveness.NewExpiry(cfg.MemberID, cfg.Tick),
	}
	s.endings = endings.New(cfg.MemberID, s.alone(), cfg.Tick, s.sessions.interval())
	s.lines = &serverLines{shared: s.shared}
	s.leader = &leadership{
		shared: s.shared, sessions: s.sessions, conns: &s.conns, lines: &s.lines.lines, growth: s.growth,
		ports: &s.ports, fail: s.fail,
		contact: liveness.Contact{Tick: cfg.Tick}, log: transitions{shared: s.shared},
	}
	_, _ = rand.Read(s.leader.nonce[:]) // does not fail
	s.backups.noContact = s.noContact
	s.trail = trail.Trail{
		Log: cfg.Audit, Reads: cfg.AuditReads,
		MaxACLEntries: datatree.MaxACLEntries, MaxACLBytes: datatree.MaxACLBytes,
	}
	s.writes.Init(cfg.maxWrites(), cfg.maxWriteBytes(), cfg.LargeRequestThreshold, cfg.LargeRequestMaxBytes)
	s.writes.Long.Lost = s.standstill.Lost
	s.meter.Init(slow)
	s.meter.Slow.SetThreshold(cfg.SlowRequest)
	s.facts = &Facts{
		shared: s.shared, serving: s, conns: &s.conns, sessions: s.sessions, leader: s.leader, writes: &s.writes,
		ports: &s.ports, strangers: &s.strangers, backups: &s.backups,
	}
	s.facts.SetTraceMask(defaultTraceMask)
	s.growth.init(s)
	return s, nil
}

// Start opens the client port, restores the state, and returns when clients are served. ctx bounds
// only the start. If Start returns an error, the server is closed.
func (s *Server) Start(ctx context.Context) error {
	ctx, over, err := s.life.Begin(ctx)
	if err != nil {
		return err
	}
	err = s.start(ctx)
	over()
	if err != nil {
		s.Audit(audit.Event{Operation: audit.ServerStart, Result: audit.Failure, Detail: err.Error()})
		return errors.Join(err, s.Close())
	}
	return nil
}

func (s *Server) start(ctx context.Context) (err error) {
	s.startedWall, s.startedMono = s.cfg.Now(), time.Now()
	s.meter.Hot.Start(s.startedMono)
	defer func() {
		if err != nil && s.node == nil && s.cfg.PeerListener != nil {
			err = errors.Join(err, s.cfg.PeerListener.Close())
		}
	}()
	if err := s.ports.openClients(ctx); err != nil {
		return err
	}
	if err := s.leader.checkDiverged(); err != nil {
		return err
	}
	s.backups.removeLeftovers()
	if err := s.openNode(ctx); err != nil {
		return err
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.life.Cancel = cancel
	s.life.Goroutines.Go(func() { s.standstill.Run(run) }) // stopped by cancel, awaited by shutdown
	failed := make(chan error, 1)
	// Stopped by cancel, awaited by shutdown.
	s.life.Goroutines.Go(func() {
		err := s.node.Run(run)
		if !errors.Is(err, consensus.ErrClosed) {
			failed <- err
			s.fail(err)
		}
	})
	s.reloading.Lock() // a Reload at the same time must not set its level before this one
	s.life.Accepting.Store(true)
	s.node.SetMaxLevel(consensus.Level(s.live.Load().MaxFeatureLevel)) // Reload may have changed it before
	err = s.node.SetPeerTLS(s.live.Load().PeerTLS.forPeers())          // the same
	s.reloading.Unlock()
	if err != nil {
		return err
	}
	s.ports.serve(run, func(l net.Listener, kind portKind) { s.accept(run, l, kind) })
	if err := s.leader.await(ctx, failed); err != nil {
		return err
	}
	s.leader.endReadOnly()
	s.sessions.adopt()
	s.Audit(audit.Event{Operation: audit.ServerStart, Result: audit.Success})
	s.servingFrom.Store(&servingFrom{at: s.cfg.Now(), zxid: s.state.lastZxid()})
	s.life.Serving.Store(true)
	s.state.wake()
	s.life.Goroutines.Go(func() { s.runSessions(run) })           // stopped by cancel, awaited by shutdown
	s.life.Goroutines.Go(func() { s.sessions.runCollector(run) }) // stopped by cancel, awaited by shutdown
	s.life.Goroutines.Go(func() { s.growth.run(run) })            // the same
	st := s.state.stats()
	ports := []any{"address", s.ConnectString()}
	if a := s.SecureAddr(); a != nil {
		if s.Addr() == nil {
			ports = nil // the address within the process would look like a port
		}
		ports = append(ports, "secure_address", a.String())
	}
	s.cfg.Logger.Info("serving clients", append(ports, "data", s.dataName(), "mode", s.facts.mode(),
		"znodes", st.Znodes, "sessions", st.Sessions, "zxid", proto.Zxid(st.Zxid).String(),
		"start_ms", s.cfg.Now().Sub(s.startedWall).Milliseconds())...)
	// The checkpoint and the log may hold other long lists, shortened before the previous end.
	s.state.RLock()
	defer s.state.RUnlock()
	s.state.tree.LongLists(s.state.options.LongList)
	return nil
}

func (s *Server) openNode(ctx context.Context) error {
	peerListener, err := s.ports.openPeers(ctx)
	if err != nil {
		return err
	}
	s.backups.logRoom = 2 * s.cfg.SegmentBytes
	s.cfg.Logger.Info("starting", "version", s.cfg.Version)
	opening, machine := time.Now(), newApplier(s)
	s.node, err = consensus.Open(consensus.Config{
		ID: uint64(s.cfg.MemberID), Voters: s.members.Voters(), Learners: s.members.Observers(),
		JoinOnly: s.cfg.JoinOnly, Relayed: s.cfg.RelayedObservers, PeerListener: peerListener, PeerAddress: s.ports.reachedAt(), AddressPatience: s.cfg.AddressPatience, PeerDial: s.cfg.PeerDial, PeerConns: peerConns(), Tick: raftTick(s.cfg.Tick),
		PeerSecret: s.cfg.PeerSecret, PeerSecretOptional: s.cfg.PeerSecretOptional, PeerTLS: s.cfg.PeerTLS.forPeers(),
		FormTicks: s.ports.formTicks(), Follows: s.cfg.Standby,
		OnMessage: s.leader.received, OnReconciled: s.reconciled, OnLost: machine.lost, Rand: s.cfg.Rand,
		MemoryBytes: cmp.Or(s.cfg.hooks.Memory, memlimit.Available()), Crowded: s.growth.crowded(), Free: machine.dropState,
		Dir: s.cfg.Dir, Memory: (*consensus.Memory)(s.cfg.Memory), LogDir: s.cfg.LogDir, FS: s.cfg.hooks.LogFS, DirFS: s.cfg.hooks.DataFS, StateMachine: machine,
		Validate: datatree.ValidateRequest, Now: s.cfg.Now, CheckpointRequests: s.cfg.SnapCount, SegmentBytes: s.cfg.SegmentBytes, NoSync: s.cfg.NoSync,
		OnSync: s.synced, OnCheckpoint: s.backups.checkpointed, OnLeaderChange: s.meter.Led,
		ArchiveBytes: s.cfg.ArchiveBytes, Levels: s.cfg.levels, MaxLevel: consensus.Level(s.cfg.MaxFeatureLevel),
		Logger: s.cfg.Logger.Named("consensus"),
	})
	if err != nil {
		return err
	}
	s.meter.Record(meter.Opening, int64(time.Since(opening)), 1)
	s.followMembers()
	if !s.alone() {
		s.cfg.Logger.Info("joining the ensemble",
			"server", memberid.Number(s.cfg.MemberID), "voters", memberid.Numbers(s.members.Voters()), "observers", memberid.Numbers(s.members.Observers()),
			"peer_address", peerListener.Addr().String(), "data", s.dataName())
	}
	return nil
}

// raftTick returns the unit of raft's timers: a fraction of ZooKeeper's tick, because an election
// should not take several ticks. Below 20 ms, which is an election timeout of 200 ms, a busy
// machine loses leaders that are healthy.
func raftTick(tick time.Duration) time.Duration {
	return min(max(tick/40, 20*time.Millisecond), 50*time.Millisecond)
}

func (s *Server) dataName() string { return cmp.Or(s.cfg.Dir, "memory") }

// synced is called by consensus after each sync of the log.
func (s *Server) synced(took time.Duration, appends, bytes int) {
	now := time.Now()
	took -= s.standstill.Lost(now.Add(-took), now) // the disk may have answered meanwhile
	s.meter.Record(meter.Syncs, int64(took), 1)
	s.meter.Record(meter.AppendsPerSync, int64(appends), 1)
	if took > s.live.Load().SyncWarning {
		at := s.cfg.Now()
		s.endings.Note(facts.SlowDisk, at.Add(-took), at)
		s.meter.Count(meter.SlowSyncs)
		s.cfg.Logger.Warn("slow fsync: the log's disk is overloaded, writes wait for it", "took_ms", took.Milliseconds(), "bytes", bytes)
	}
}
