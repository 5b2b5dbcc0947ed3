package core

import (
	"bytes"
	"errors"
	"fmt"
	"maps"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

const (
	// ElectionTicks is raft's election timeout in ticks.
	ElectionTicks = 10
	// heartbeatTicks is how often a leader makes itself heard, except at rest: five times in the
	// shortest election timeout.
	heartbeatTicks = 2
	// maxBatchBytes bounds the requests of an entry; a single request may be larger.
	maxBatchBytes = 1 << 20
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
	// Form: this member helps to form a new ensemble. When its identity is durable, call Formed.
	Form bool
	// NeedCheckpoint are members that need a checkpoint. Call TransferStarted, then TransferEnded.
	NeedCheckpoint []uint64
	Reconciled     []Reconciled
}

// Empty reports whether there is no work.
func (o *Output) Empty() bool {
	return len(o.Appends)+len(o.Messages)+len(o.Batches)+len(o.Reads)+len(o.NeedCheckpoint)+len(o.Reconciled) == 0 && !o.Form
}

// Core is raft plus the proposal streams and the reads. All else that a member does is decided by
// the parts of its Core. They share the raftState, and the Core tells them when it steps a message,
// ticks, or sees another leader. A Core does no I/O and is not safe for concurrent use.
type Core struct {
	raftState
	cluster      uint64 // identifies the ensemble; 0: not known yet
	random       func() uint64
	own          ownStream
	streams      Streams // applied so far
	incarnations uint64  // counts changes of an incarnation in streams
	proposer     proposer
	reads        reads
	appliedMs    int64     // time of the last batch that was handed out
	requests     []Request // buffer for the batches of the last Ready

	Acks       *Acks
	Admission  *Admission
	Clock      *Clock
	Levels     *Levels
	LogStall   *LogStall
	Membership *Membership
	Relays     *Relays
	Retention  *Retention
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
	// how long a majority waits for the last of them; negative: until all members are there,
	// because the directory of this member was emptied. They count for fresh members only.
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
func New(cfg Config) (_ *Core, err error) {
	c := &Core{
		raftState: raftState{
			id: cfg.ID, storage: cfg.Storage, logger: cfg.Logger, conf: cfg.Meta.Conf, fresh: cfg.Meta.Conf == nil,
			applied: cfg.Meta.Index, appliedTerm: cfg.Meta.Term, connected: make(map[uint64]connection),
			inFlight: cfg.Retention.InFlight,
		},
		cluster: cfg.Meta.Cluster, random: cfg.Random, streams: maps.Clone(cfg.Meta.Streams), appliedMs: cfg.Meta.TimeMs,
		own:      ownStream{incarnation: cfg.Incarnation, first: 1},
		proposer: proposer{heads: Streams{}, validate: cfg.Validate},
		reads:    reads{rounds: make(map[uint64][]func())},
	}
	if c.streams == nil {
		c.streams = Streams{}
	}
	if c.fresh {
		c.conf = &raftpb.ConfState{}
	}
	m := &c.raftState
	c.Acks = &Acks{raftState: m}
	c.LogStall = &LogStall{raftState: m, offers: make(map[uint64]int), probes: probes{last: make(map[uint64]probe)}}
	c.Retention = &Retention{raftState: m, limits: cfg.Retention, pinned: make(map[uint64]pinnedIndex)}
	c.Membership = newMembership(m, c.LogStall, c.Retention)
	c.Clock = &Clock{raftState: m, stall: c.LogStall, membership: c.Membership, quiet: c.quiet}
	c.Relays = &Relays{raftState: m, stall: c.LogStall, wanted: cfg.Relayed, leases: make(map[uint64]*relayLease)}
	c.Admission = newAdmission(m, c.Membership, c.standAside, &cfg)
	if c.Levels, err = newLevels(m, &cfg); err != nil {
		return nil, err
	}
	if err := errors.Join(c.startRaft(), c.Retention.load()); err != nil {
		return nil, err
	}
	if cfg.Outdated && c.Admission.stayOutdated() {
		return c, nil
	}
	return c, c.Clock.begin()
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
		c.Admission.handleJoin(m.From, m.join)
	case m.answer != nil:
		return c.Admission.handleAnswer(m.From, m.answer)
	case m.commit != nil:
		c.Membership.noteState(m.From)
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
	if r.GetTo() != c.id || r.GetFrom() != m.From || !c.takesPart() || c.Admission.tooEarly(r) {
		return nil
	}
	if r.GetType() == raftpb.MsgReadIndexResp && m.From != c.leader {
		return nil // only the leader answers read rounds: the answer of an earlier one is late
	}
	if reason := c.nonsense(r); reason != "" {
		c.refuse(r, reason)
		return nil
	}
	if r = c.Relays.step(r); r == nil {
		return nil
	}
	if r.GetType() == raftpb.MsgHeartbeat {
		if ok, err := c.Admission.checkCommit(r); !ok {
			return err
		}
	}
	c.Membership.noteState(m.From)
	if m.From == c.leader {
		c.Clock.heardLeader()
	}
	if r.GetType() == raftpb.MsgPreVote {
		c.sendCommitNotice(m.From)
	}
	switch known := bytes.Equal(r.GetContext(), receiving[:]); { // that a message of this member is arriving
	case known && r.GetType() == raftpb.MsgHeartbeatResp:
		c.LogStall.noteReceiving(m.From)
	case known && r.GetType() == raftpb.MsgHeartbeat && m.From == c.leader && r.GetTerm() == c.raftTerm:
		r.Context = nil // the answer to a context would say that a message arrives here
		if c.own.idle = 0; r.GetLogTerm() == c.own.incarnation {
			c.own.logged = r.GetIndex()
		}
	}
	c.Clock.noteLateVote(r)
	if c.LogStall.passive() && needsLog(r) {
		return nil
	}
	return c.feed(r)
}

// Persisted takes a response of the disk to this member.
func (c *Core) Persisted(m *raftpb.Message) error {
	if c.Admission.persisted(m) {
		return nil
	}
	return c.feed(m)
}

// Tick advances all timers by one tick.
func (c *Core) Tick() {
	c.Clock.tick()
	c.LogStall.tick()
	c.Clock.tickCampaign()
	c.Admission.tick()
	c.Clock.tickSilence()
	c.tickStreams()
	c.tickReads()
	c.Membership.tick()
	c.Retention.tick()
	c.Relays.tick()
	c.Acks.tick()
	c.Clock.tickRest()
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
		if c.proof != "" || !c.raft.HasReady() {
			break
		}
		if err := c.collect(&out, c.raft.Ready()); err != nil {
			return Output{}, err
		}
	}
	out.Messages, c.outbox = append(out.Messages, c.outbox...), nil
	c.releaseReads(&out)
	c.Relays.feedLearners(&out)
	return out, c.Retention.cut()
}

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
			c.noteAppend(m)
			out.Appends = append(out.Appends, m)
		case m.GetTo() == raft.LocalApplyThread:
			if err := c.handOut(out, m); err != nil {
				return err
			}
		case m.GetType() == raftpb.MsgSnap:
			out.NeedCheckpoint = append(out.NeedCheckpoint, m.GetTo())
		case m.GetType() == raftpb.MsgApp && c.Relays.Leased(m.GetTo()):
		case c.LogStall.repeats(m):
		default:
			out.Messages = append(out.Messages, Message{To: m.GetTo(), From: c.id, Raft: m})
			if m.GetType() == raftpb.MsgHeartbeatResp {
				c.Relays.report(out)
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
	c.LogStall.leadershipChanged()
	c.Membership.leadershipChanged()
	c.Relays.leadershipChanged()
	c.Levels.leadershipChanged()
	c.Retention.leadershipChanged()
	c.Clock.leadershipChanged()
}

// standAside ends this member's part in raft, because the member is outdated.
func (c *Core) standAside() {
	c.leader, c.role = raft.None, raft.StateFollower
	c.leadershipChanged()
}

// flush sends the requests, reads and changes of the membership that wait.
func (c *Core) flush(out *Output, nowMs int64) error {
	switch {
	case c.role == raft.StateLeader && c.Current():
		// Not earlier: only after its first entry does a leader know which requests are in the log.
		if err := c.proposeWaiting(out, nowMs); err != nil {
			return err
		}
		if err := c.Levels.propose(nowMs, c.Membership.target); err != nil {
			return err
		}
		if err := c.Membership.reconcile(out); err != nil {
			return err
		}
	case c.role != raft.StateLeader && c.leader != raft.None:
		c.forwardPending(out)
	}
	c.startReadRound()
	c.Admission.form(out)
	return nil
}

// handOut turns committed entries into batches. The caller applies them before it calls Ready
// again, so raft is told at once that they are applied.
func (c *Core) handOut(out *Output, m *raftpb.Message) error {
	for _, e := range m.GetEntries() {
		b, own, requests := Batch{Index: e.GetIndex(), NewTerm: e.GetTerm() != c.appliedTerm}, c.own.first, len(c.requests)
		switch {
		case e.GetType() == raftpb.EntryConfChangeV2:
			if err := c.Membership.apply(e); err != nil {
				return err
			}
			c.Levels.recheck()
		case e.GetType() != raftpb.EntryNormal:
			return fmt.Errorf("consensus: entry %d of the log is of type %v, which this version does not support: start a version of gozkd that does", e.GetIndex(), e.GetType())
		case EntryLevel(e) != 0:
			timeMs, err := c.Levels.apply(e)
			if err != nil {
				return err
			}
			c.appliedMs = max(c.appliedMs, timeMs)
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
		b.TimeMs, b.Level = c.appliedMs, c.Levels.Active()
		c.applied, c.appliedTerm = e.GetIndex(), e.GetTerm()
		c.Retention.note(len(e.Data))
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

// ForgetReplayed releases the memory of the batches that Replay has returned.
func (c *Core) ForgetReplayed() {
	c.reuseRequests()
	c.Retention.reset()
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
	c.Levels.installed(meta.Level)
	c.streams = maps.Clone(meta.Streams)
	c.applied, c.appliedTerm, c.appliedMs = meta.Index, meta.Term, max(c.appliedMs, meta.TimeMs)
	c.Retention.reset()
	c.incarnations++
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
		Member: c.id, Level: c.Levels.Active(), Cluster: c.cluster, Index: c.applied, Term: c.appliedTerm,
		TimeMs: c.appliedMs, Conf: c.conf, Streams: maps.Clone(c.streams),
	}
}

// FirstMeta returns the meta of a new ensemble's first state. Index 1, term 1 stand for no entry.
func (c *Core) FirstMeta() Meta {
	m := c.Meta()
	m.Index, m.Term = 1, 1
	m.Conf = &raftpb.ConfState{Voters: c.Admission.voters, Learners: c.Admission.learners}
	return m
}

// Formed makes this member part of a new ensemble. Call it when FirstState, FirstMeta are durable.
func (c *Core) Formed() error {
	if err := c.Admission.formed(c.FirstMeta()); err != nil {
		return err
	}
	return c.Clock.begin()
}

// SetTarget sets the membership to reach. All members are given the same target, as they apply it.
func (c *Core) SetTarget(t Target) {
	c.Membership.setTarget(t)
	c.Levels.recheck()
}

// Mark returns the present mark.
func (c *Core) Mark() Mark { return c.Admission.mark(c.own.incarnation) }

// HandOver passes leadership to the voter to, or, if to is 0, to the most up-to-date other voter.
// HandOver returns false if this member does not lead, or the voter cannot take over now.
func (c *Core) HandOver(to uint64) bool {
	among := c.conf.GetVoters()
	if to != 0 {
		among = []uint64{to}
	}
	return c.role == raft.StateLeader && c.LogStall.transferLeadership(among) != 0
}

// Reachable notes a connection to a member. If the connection is new, messages on the previous
// connection may be lost.
func (c *Core) Reachable(peer uint64) {
	c.connected[peer] = connectionUp
	c.LogStall.forget(peer)
	c.Acks.forget(peer)
	if peer == c.leader && c.role != raft.StateLeader {
		c.own.resend()
		c.retryReadRound()
	}
	c.Clock.campaignEarly()
}

// Unreachable notes that the connection to a member is lost. gone says that its port refuses
// connections, so that the member is not merely slow: an election for a leader that is gone begins
// before the timeout.
func (c *Core) Unreachable(peer uint64, gone bool) {
	delete(c.connected, peer)
	c.Levels.unreachable(peer)
	c.Relays.unreachable(peer)
	c.LogStall.forget(peer)
	c.Acks.forget(peer)
	c.raft.ReportUnreachable(peer)
	if gone && peer == c.leader && c.role == raft.StateFollower {
		c.Clock.leaderGone()
	}
}
