package core

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

const (
	// ElectionTicks is raft's election timeout in ticks.
	ElectionTicks = 10
	electionTicks = ElectionTicks
	// heartbeatTicks is how often a leader makes itself heard, except at rest: five times in the
	// shortest election timeout.
	heartbeatTicks = 2
	// maxBatchBytes bounds the requests of an entry; a single request may be larger.
	maxBatchBytes = 1 << 20
	// maxInflightBytes bounds the entries that the leader sends to a member without an answer.
	maxInflightBytes = 32 << 20
	// maxKeptRequests is the largest capacity of the request buffer that is kept between two turns.
	maxKeptRequests = 4096
)

// Output is the work of a turn. Package turn defines the order in which it is carried out.
type Output struct {
	// Appends are writes to the log, in order. When an append and all before it are durable, its
	// responses are delivered; those addressed to this member go to Core.Persisted.
	Appends  []*raftpb.Message
	Messages []Message
	Batches  []Batch
	FirstOwn []uint64 // by batch: the number of the first request with a Ref; 0: there is none
	Reads    []func() // run when all Batches are applied
	// Form: this member takes part in forming a new ensemble. When its identity is durable, call
	// Formed.
	Form bool
	// NeedCheckpoint are members that need a checkpoint. Call TransferStarted, then TransferEnded.
	NeedCheckpoint []uint64
	Reconciled     []Reconciled
}

// Empty reports whether there is no work.
func (o *Output) Empty() bool {
	return len(o.Appends)+len(o.Messages)+len(o.Batches)+len(o.Reads)+len(o.NeedCheckpoint)+len(o.Reconciled) == 0 && !o.Form
}

// Core is raft plus the proposal streams, the reads and the membership. It does no I/O and is not
// safe for concurrent use.
type Core struct {
	id      uint64
	raft    *raft.RawNode
	storage *raft.MemoryStorage
	conf    *raftpb.ConfState
	cluster uint64 // identifies the ensemble; 0: not known yet
	logger  raft.Logger
	random  func() uint64

	own      ownStream
	streams  Streams // applied so far
	proposer proposer

	applied     uint64 // index of the last entry that was handed out
	appliedTerm uint64 // its term
	appliedMs   int64  // time of the last batch that was handed out
	raftTerm    uint64 // raft's own term
	leader      uint64 // as raft sees it; 0: none
	role        raft.StateType

	reads      reads
	retention  retention
	membership membership
	start      startup
	ticks      ticks
	levels     levels
	stall      logStall
	wire       wire

	requests []Request // buffer for the batches of the last Ready
}

// Config describes a member at its start.
type Config struct {
	ID          uint64
	Incarnation uint64 // of this server's stream
	// Past is the newest incarnation that the data directory knew before; 0: there was none.
	// Outdated: the directory says that it is older than what this member has acknowledged.
	Past     uint64
	Outdated bool
	Storage  *raft.MemoryStorage // holds the log
	Meta     Meta                // of the state that the state machine was restored from; without Conf: this member is fresh
	// Voters and Learners are the initial members, Nonce identifies this life, and GraceTicks is
	// how long a majority waits for the last of them. They count for fresh members only.
	Voters, Learners []uint64
	Nonce            uint64
	GraceTicks       int
	// Levels are those that this program supports. Default: SupportedLevels. LevelLimit is the
	// highest of them that this member agrees to activate; 0: no limit.
	Levels     LevelRange
	LevelLimit Level
	// Relayed: as a learner, this member asks a voter for entries instead of the leader.
	Relayed   bool
	Retention RetentionLimits
	Validate  func(payload []byte) error // nil: every request is valid
	Random    func() uint64
	Logger    raft.Logger
}

// New starts raft on the log in Storage.
func New(cfg Config) (*Core, error) {
	c := &Core{
		id: cfg.ID, storage: cfg.Storage, conf: cfg.Meta.Conf, cluster: cfg.Meta.Cluster, logger: cfg.Logger, random: cfg.Random,
		own: ownStream{incarnation: cfg.Incarnation, first: 1}, streams: maps.Clone(cfg.Meta.Streams), proposer: proposer{heads: Streams{}, validate: cfg.Validate},
		applied: cfg.Meta.Index, appliedTerm: cfg.Meta.Term, appliedMs: cfg.Meta.TimeMs,
		reads:      reads{rounds: make(map[uint64][]func())},
		retention:  retention{limits: cfg.Retention, pinned: make(map[uint64]pinnedIndex)},
		membership: newMembership(),
	}
	if c.streams == nil {
		c.streams = Streams{}
	}
	c.start.nonce, c.wire.relays.wanted = cfg.Nonce, cfg.Relayed
	if c.conf == nil {
		c.conf = &raftpb.ConfState{}
		c.start = startup{fresh: true, voters: cfg.Voters, learners: cfg.Learners, nonce: cfg.Nonce, graceTicks: cfg.GraceTicks}
	} else {
		c.start.past.incarnation = cfg.Past
	}
	c.retention.scheduleCut()
	var err error
	if c.levels, err = newLevels(&cfg); err != nil {
		return nil, err
	}
	if err := errors.Join(c.newRaft(), c.loadRetention()); err != nil {
		return nil, err
	}
	if cfg.Outdated && c.start.past.incarnation != 0 {
		c.becomeOutdated("an earlier start marked the log as outdated, and no leader has let this member in since")
		c.start.past.durable = true
		return c, nil
	}
	// A sole voter leads at once instead of after an election timeout.
	if v := c.conf.GetVoters(); len(v) == 1 && v[0] == c.id {
		return c, c.raft.Campaign()
	}
	c.campaignEarly()
	return c, nil
}

func (c *Core) newRaft() (err error) {
	c.raft, err = raft.NewRawNode(&raft.Config{
		ID:                        c.id,
		ElectionTick:              electionTicks,
		HeartbeatTick:             heartbeatTicks,
		Storage:                   raftStorage{c.storage, c},
		Applied:                   c.applied,
		AsyncStorageWrites:        true,
		MaxSizePerMsg:             maxBatchBytes,
		MaxInflightMsgs:           256,
		MaxInflightBytes:          maxInflightBytes,
		CheckQuorum:               true,
		PreVote:                   true,
		DisableProposalForwarding: true, // the streams forward, with numbers
		StepDownOnRemoval:         true,
		Logger:                    c.logger,
	})
	if err != nil {
		return fmt.Errorf("consensus: start raft: %w", err)
	}
	c.raftTerm = c.raft.BasicStatus().HardState.GetTerm()
	c.wire.last, err = c.storage.LastIndex()
	return err
}

// raftStorage is raft's view of the log in memory, with checkpoints of the state machine as its
// snapshots. If a member needs a snapshot, any state that is at least as new may be sent.
type raftStorage struct {
	*raft.MemoryStorage
	c *Core
}

// InitialState gives raft the membership as of the restored state; the log in memory may begin
// earlier.
func (s raftStorage) InitialState() (*raftpb.HardState, *raftpb.ConfState, error) {
	hard, _, err := s.MemoryStorage.InitialState()
	return hard, s.c.conf, err
}

func (s raftStorage) Snapshot() (*raftpb.Snapshot, error) {
	return Snapshot(s.c.applied, s.c.appliedTerm, s.c.conf), nil
}

// Snapshot returns raft's description of a state.
func Snapshot(index, term uint64, conf *raftpb.ConfState) *raftpb.Snapshot {
	return &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{ConfState: conf, Index: &index, Term: &term}}
}

// Propose appends a request to this server's stream. The payload must not change afterwards.
func (c *Core) Propose(payload []byte, ref any) {
	c.own.pending = append(c.own.pending, pendingRequest{payload, ref})
}

// Step takes a message of another member. A message that makes no sense is ignored: it may be late,
// and nothing that another member sends must stop this one.
func (c *Core) Step(m *Message) error {
	switch {
	case m.Raft != nil:
		return c.stepRaft(m)
	case m.Forward != nil:
		if c.role == raft.StateLeader && m.Forward.Server == m.From {
			c.proposer.incoming = append(c.proposer.incoming, *m.Forward)
		}
	case m.join != nil:
		c.handleJoin(m.From, m.join)
	case m.answer != nil:
		return c.handleJoinAnswer(m.From, m.answer)
	case m.commit != nil:
		return c.handleCommitNotice(m.From, m.commit)
	}
	return nil
}

func (c *Core) stepRaft(m *Message) error {
	r := m.Raft
	switch r.GetType() {
	case raftpb.MsgApp, raftpb.MsgAppResp, raftpb.MsgVote, raftpb.MsgVoteResp, raftpb.MsgPreVote, raftpb.MsgPreVoteResp,
		raftpb.MsgHeartbeat, raftpb.MsgHeartbeatResp, raftpb.MsgTimeoutNow, raftpb.MsgSnap, raftpb.MsgReadIndexResp:
	case raftpb.MsgReadIndex:
		// Raft makes a leader wait until it knows everything that earlier terms committed, except
		// with a sole voter. The other member asks again.
		if c.role == raft.StateLeader && !c.Current() {
			return nil
		}
	default:
		return nil
	}
	if r.GetTo() != c.id || r.GetFrom() != m.From || !c.takesPart() || (r.GetTerm() != 0 && r.GetTerm() < c.start.minTerm) {
		return nil
	}
	if r.GetType() == raftpb.MsgReadIndexResp && m.From != c.leader {
		return nil // only the leader answers read rounds: the answer of an earlier one is late
	}
	if reason := c.nonsense(r); reason != "" {
		c.refuse(r, reason)
		return nil
	}
	if r = c.stepRelay(r); r == nil {
		return nil
	}
	if r.GetType() == raftpb.MsgHeartbeat {
		if ok, err := c.checkCommit(r); !ok {
			return err
		}
	}
	c.start.heard(m.From, m.From == c.leader)
	if r.GetType() == raftpb.MsgPreVote {
		c.sendCommitNotice(m.From)
	}
	c.noteLateVote(r)
	if c.passive() && needsLog(r) {
		return nil
	}
	return c.feed(r)
}

// takesPart reports whether this member takes part in raft.
func (c *Core) takesPart() bool { return !c.start.fresh && c.start.past.proof == "" }

// Persisted takes a response of the disk to this member.
func (c *Core) Persisted(m *raftpb.Message) error {
	if m == c.start.past.confirm {
		c.start.past.durable = true
		return nil
	}
	return c.feed(m)
}

func (c *Core) feed(m *raftpb.Message) error {
	if c.start.past.proof != "" {
		return nil
	}
	if err := c.raft.Step(m); err != nil && !errors.Is(err, raft.ErrProposalDropped) && !errors.Is(err, raft.ErrStepPeerNotFound) {
		return fmt.Errorf("consensus: raft: %w", err)
	}
	return nil
}

// Tick advances all timers by one tick.
func (c *Core) Tick() {
	c.tickRaft()
	c.tickLogStall()
	c.tickStart()
	c.tickLeaderSilence()
	c.tickStreams()
	c.tickReads()
	c.tickMembership()
	c.tickRetention()
	c.tickRelays()
	c.tickRest()
}

// Ready returns the work that is to be done. nowMs is the wall clock, used if this server leads.
// After carrying out the work, call Ready again, until its output is empty.
func (c *Core) Ready(nowMs int64) (Output, error) {
	var out Output
	c.proposer.nowMs = nowMs
	c.reuseRequests()
	for {
		if err := c.flush(&out, nowMs); err != nil {
			return Output{}, err
		}
		if c.start.past.proof != "" || !c.raft.HasReady() {
			break
		}
		if err := c.collect(&out, c.raft.Ready()); err != nil {
			return Output{}, err
		}
	}
	out.Messages, c.wire.outbox = append(out.Messages, c.wire.outbox...), nil
	c.releaseReads(&out)
	c.feedLearners(&out)
	return out, c.cut()
}

// collect adds raft's work to the output.
func (c *Core) collect(out *Output, rd raft.Ready) error {
	leader, role, term := c.leader, c.role, c.raftTerm
	if rd.SoftState != nil {
		c.leader, c.role = rd.SoftState.Lead, rd.SoftState.RaftState
	}
	if rd.HardState != nil {
		c.raftTerm = rd.HardState.GetTerm()
	}
	if c.leader != leader || c.role != role || c.raftTerm != term {
		c.leadershipChanged()
	}
	for _, rs := range rd.ReadStates {
		c.readRoundConfirmed(rs)
	}
	for _, m := range rd.Messages {
		switch {
		case m.GetTo() == raft.LocalAppendThread:
			c.wire.noteAppend(m)
			out.Appends = append(out.Appends, m)
		case m.GetTo() == raft.LocalApplyThread:
			if err := c.handOut(out, m); err != nil {
				return err
			}
		case m.GetType() == raftpb.MsgSnap:
			out.NeedCheckpoint = append(out.NeedCheckpoint, m.GetTo())
		case m.GetType() == raftpb.MsgApp && c.Leased(m.GetTo()):
		case c.repeats(m):
		default:
			out.Messages = append(out.Messages, Message{To: m.GetTo(), From: c.id, Raft: m})
			if m.GetType() == raftpb.MsgHeartbeatResp {
				c.report(out)
			}
		}
	}
	return nil
}

// leadershipChanged is called when leader, role or term changed. Requests that were under way to
// the previous leader may be lost: they go out again, and accept drops those that arrive twice.
func (c *Core) leadershipChanged() {
	c.own.resend()
	c.proposer.reset()
	c.retryReadRound()
	c.stall.probes = probes{}
	c.membership.leadershipChanged()
	c.wire.relays.reset()
	c.levels.proposed, c.levels.checkDue = false, true
	clear(c.retention.pinned)
	if c.leader != raft.None {
		c.start.campaignIn, c.start.campaigned = 0, false
	}
}

// flush sends the requests, reads and changes of the membership that wait.
func (c *Core) flush(out *Output, nowMs int64) error {
	switch {
	case c.role == raft.StateLeader && c.Current():
		// Not earlier: only after its first own entry does a leader know which requests are in the
		// log.
		if err := c.proposeWaiting(nowMs); err != nil {
			return err
		}
		if err := c.proposeLevel(nowMs); err != nil {
			return err
		}
		if err := c.reconcile(out); err != nil {
			return err
		}
	case c.role != raft.StateLeader && c.leader != raft.None:
		c.forwardPending(out)
	}
	c.startReadRound()
	c.form(out)
	return nil
}

// handOut turns committed entries into batches. The caller applies them before it calls Ready
// again, so raft is told at once that they are applied.
func (c *Core) handOut(out *Output, m *raftpb.Message) error {
	for _, e := range m.GetEntries() {
		b, own, requests := Batch{Index: e.GetIndex(), NewTerm: e.GetTerm() != c.appliedTerm}, c.own.first, len(c.requests)
		switch {
		case e.GetType() == raftpb.EntryConfChangeV2:
			if err := c.applyConfChange(e); err != nil {
				return err
			}
		case e.GetType() != raftpb.EntryNormal:
			return fmt.Errorf("consensus: entry %d of the log is of type %v, which this version does not support: start a version of gozkd that does", e.GetIndex(), e.GetType())
		case EntryLevel(e) != 0:
			if err := c.applyLevelChange(e); err != nil {
				return err
			}
		case len(e.Data) > 0:
			timeMs, err := ReadBatch(e.Data, func(server, incarnation, number uint64, payload []byte) {
				c.accept(server, incarnation, number, payload)
			})
			if err != nil {
				return fmt.Errorf("entry %d: %w", e.GetIndex(), err)
			}
			b.Requests = c.requests[requests:len(c.requests):len(c.requests)]
			c.appliedMs = max(c.appliedMs, timeMs)
			if c.proposer.inFlight > 0 && e.GetTerm() == c.raftTerm {
				c.proposer.inFlight--
			}
		}
		b.TimeMs, b.Level = c.appliedMs, c.levels.active
		c.applied, c.appliedTerm = e.GetIndex(), e.GetTerm()
		c.retention.note(len(e.Data))
		if c.own.first == own {
			own = 0
		}
		out.Batches, out.FirstOwn = append(out.Batches, b), append(out.FirstOwn, own)
	}
	for _, r := range m.GetResponses() {
		if err := c.feed(r); err != nil {
			return err
		}
	}
	return nil
}

// Replay returns the batch of an entry, as Ready would when the entry is committed. The batch is
// valid until ForgetReplayed is called. The core must be used for nothing else.
func (c *Core) Replay(e *raftpb.Entry) ([]Batch, error) {
	var out Output
	err := c.handOut(&out, &raftpb.Message{Entries: []*raftpb.Entry{e}})
	return out.Batches, err
}

// ForgetReplayed releases the memory of what Replay has returned.
func (c *Core) ForgetReplayed() {
	c.reuseRequests()
	c.retention.reset()
}

// reuseRequests forgets the requests of the last Ready, which are applied by now.
func (c *Core) reuseRequests() {
	if cap(c.requests) > maxKeptRequests {
		c.requests = nil
	}
	clear(c.requests)
	c.requests = c.requests[:0]
}

// Installed takes over the state of a checkpoint that came from the leader and is durable.
// Installed must be called before the append's responses are passed to Persisted. lost are the refs
// of this server's requests that are applied in the checkpoint.
func (c *Core) Installed(meta *Meta, incarnation uint64) (lost []any) {
	c.conf, c.cluster = meta.Conf, meta.Cluster
	c.levels.active, c.levels.checkDue = max(c.levels.active, meta.Level), true
	c.streams = maps.Clone(meta.Streams)
	c.applied, c.appliedTerm, c.appliedMs = meta.Index, meta.Term, max(c.appliedMs, meta.TimeMs)
	c.retention.reset()
	c.start.incarnations++
	c.SeeOwnIncarnation(c.streams[c.id].Incarnation)
	lost = c.own.dropApplied(c.streams[c.id])
	if incarnation > c.own.incarnation {
		c.own.renumber(incarnation)
	}
	return lost
}

// Meta describes the state as of the batches handed out so far.
func (c *Core) Meta() Meta {
	return Meta{
		Member: c.id, Level: c.levels.active, Cluster: c.cluster, Index: c.applied, Term: c.appliedTerm, TimeMs: c.appliedMs,
		Conf: c.conf, Streams: maps.Clone(c.streams),
	}
}

func (c *Core) isVoter(id uint64) bool { return slices.Contains(c.conf.GetVoters(), id) }
