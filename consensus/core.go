package consensus

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

const (
	electionTicks = 10
	// maxBatchBytes bounds the requests of one entry; a single request may be larger.
	maxBatchBytes = 1 << 20
	// maxInflightBytes bounds what the leader sends to a member that has not answered.
	maxInflightBytes = 32 << 20
	// maxKeptRequests is how many requests there is room kept for between two turns.
	maxKeptRequests = 4096
)

// Batch is what the state machine applies in one step: the requests of one raft entry.
type Batch struct {
	Index   uint64 // of the raft entry
	NewTerm bool   // first entry of a new raft term
	TimeMs  int64  // the leader's wall clock, Unix milliseconds, never less than in the batch before (C6)
	// Requests are those that were accepted (C2), in order; it may be empty. The slice is valid during Apply.
	Requests []Request
	// Proposed is when this member sent its own requests of the batch to the leader or, if it leads, made the entry; Came when the
	// entry was made or came here; Synced when it was in the log here. By Config.Now; zero: not known, as of what was in the log at
	// the start, or there are no own requests.
	Proposed, Came, Synced time.Time
}

// Request is one request of a batch.
type Request struct {
	Payload []byte // as proposed; valid during Apply
	Ref     any    // as proposed, if this process proposed it, else nil
}

// output is what the core wants done, in this order: write appends (in order; when one and all before it are on disk, its
// responses go to whom they are addressed, those to this server to persisted), send messages, apply batches, run reads.
type output struct {
	appends  []*raftpb.Message
	messages []message
	batches  []Batch
	own      []uint64 // of each batch: number of the first request that has a Ref; 0: none
	reads    []func()
	// form: this member takes part in making a new ensemble. When its identity is on disk, call formed.
	form bool
	// checkpointsFor are members that need a checkpoint; call transferStarted, then transferEnded.
	checkpointsFor []uint64
	steered        []Steered
}

func (o *output) empty() bool {
	return len(o.appends)+len(o.messages)+len(o.batches)+len(o.reads)+len(o.checkpointsFor)+len(o.steered) == 0 && !o.form
}

// core is raft plus the proposal streams, the reads and the membership. It does no I/O and is not safe for concurrent use.
type core struct {
	id      uint64
	node    *raft.RawNode
	storage *raft.MemoryStorage
	conf    *raftpb.ConfState
	cluster uint64 // what tells this ensemble from others; 0: not known yet
	logger  raft.Logger
	random  func() uint64

	own      own
	streams  streams // applied so far
	heads    streams // leading: proposed in this term and not applied yet
	incoming []group // leading: what others forwarded, to be proposed
	underWay int     // leading: entries with requests that are proposed and not handed out
	madeMs   int64   // when the last of these was made
	nowMs    int64   // the time of the last ready
	proposed int64   // requests that went into entries here
	// othersFirst: the requests of others come first in the next entry, not our own.
	othersFirst bool

	applied  uint64 // index of the last entry that was handed out
	term     uint64 // of that entry
	timeMs   int64  // of the last batch that was handed out
	raftTerm uint64 // raft's own
	leader   uint64 // as raft sees it; 0: none
	role     raft.StateType

	reads  reads
	tail   tail
	member membership
	start  startup
	pace   pace
	outbox []message // made outside of ready, to go out with the next one

	// Kept for their memory alone.
	entry    []byte    // of encode
	requests []Request // of the batches of the last ready
}

type coreConfig struct {
	id          uint64
	incarnation uint64
	storage     *raft.MemoryStorage
	state       checkpointMeta // what the state machine was restored from; without Conf: this member is fresh
	// fresh members only: the members to begin with, the nonce of this life, and how long to wait for the last of them
	voters, learners []uint64
	nonce            uint64
	graceTicks       int
	tail             tailLimits
	random           func() uint64
	logger           raft.Logger
}

func newCore(cfg coreConfig) (*core, error) {
	c := &core{
		id: cfg.id, storage: cfg.storage, conf: cfg.state.Conf, cluster: cfg.state.Cluster, logger: cfg.logger, random: cfg.random,
		own: own{incarnation: cfg.incarnation, first: 1}, streams: maps.Clone(cfg.state.Streams), heads: streams{},
		applied: cfg.state.Index, term: cfg.state.Term, timeMs: cfg.state.TimeMs,
		reads:  reads{rounds: make(map[uint64][]func())},
		tail:   tail{limits: cfg.tail, pinned: make(map[uint64]pin)},
		member: newMembership(),
	}
	if c.streams == nil {
		c.streams = streams{}
	}
	if c.conf == nil {
		c.conf = &raftpb.ConfState{}
		c.start = startup{fresh: true, voters: cfg.voters, learners: cfg.learners, nonce: cfg.nonce, graceTicks: cfg.graceTicks}
	}
	c.tail.lookLater()
	if err := errors.Join(c.newRaft(), c.loadTail()); err != nil {
		return nil, err
	}
	// A sole voter leads at once, instead of after an election timeout.
	if v := c.conf.GetVoters(); len(v) == 1 && v[0] == c.id {
		return c, c.node.Campaign()
	}
	c.hurry()
	return c, nil
}

func (c *core) newRaft() (err error) {
	c.node, err = raft.NewRawNode(&raft.Config{
		ID:                        c.id,
		ElectionTick:              electionTicks,
		HeartbeatTick:             1,
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
	c.raftTerm = c.node.BasicStatus().HardState.GetTerm()
	return nil
}

// raftStorage is raft's view of the log in memory, with checkpoints of the state machine as its snapshots: when a member
// needs one, any state that is at least as new as this may be sent.
type raftStorage struct {
	*raft.MemoryStorage
	c *core
}

// InitialState gives raft the membership as of the state that was restored; the log in memory may begin before that.
func (s raftStorage) InitialState() (*raftpb.HardState, *raftpb.ConfState, error) {
	hard, _, err := s.MemoryStorage.InitialState()
	return hard, s.c.conf, err
}

func (s raftStorage) Snapshot() (*raftpb.Snapshot, error) {
	return snapshotOf(s.c.applied, s.c.term, s.c.conf), nil
}

func snapshotOf(index, term uint64, conf *raftpb.ConfState) *raftpb.Snapshot {
	return &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{ConfState: conf, Index: &index, Term: &term}}
}

// propose appends a request to this server's stream. The payload must not change afterwards.
func (c *core) propose(payload []byte, ref any) {
	c.own.pending = append(c.own.pending, request{payload, ref})
}

// step takes a message of another member. What makes no sense is ignored: members are trusted, but they may be late.
func (c *core) step(m message) error {
	switch {
	case m.raft != nil:
		return c.stepRaft(m)
	case m.forward != nil:
		if c.role == raft.StateLeader && m.forward.server == m.from {
			c.incoming = append(c.incoming, *m.forward)
		}
	case m.join != nil:
		c.joinAsked(m.from, m.join)
	case m.answer != nil:
		c.joinAnswered(m.from, m.answer)
	case m.settled != nil:
		return c.settle(m.from, m.settled)
	}
	return nil
}

func (c *core) stepRaft(m message) error {
	r := m.raft
	switch r.GetType() {
	case raftpb.MsgApp, raftpb.MsgAppResp, raftpb.MsgVote, raftpb.MsgVoteResp, raftpb.MsgPreVote, raftpb.MsgPreVoteResp,
		raftpb.MsgHeartbeat, raftpb.MsgHeartbeatResp, raftpb.MsgTimeoutNow, raftpb.MsgSnap, raftpb.MsgReadIndexResp:
	case raftpb.MsgReadIndex:
		// Raft makes a leader wait until it knows what was committed before its time, but not a sole voter. The other asks again.
		if c.role == raft.StateLeader && !c.current() {
			return nil
		}
	default:
		return nil
	}
	if c.applied == 0 && r.GetType() == raftpb.MsgHeartbeat && r.GetCommit() > 0 {
		return nil // it was meant for an earlier life of this member, which had a log
	}
	if r.GetTo() != c.id || r.GetFrom() != m.from || c.start.fresh || (r.GetTerm() != 0 && r.GetTerm() < c.start.minTerm) {
		return nil
	}
	if m.from == c.leader {
		c.start.quiet = 0
	}
	if r.GetType() == raftpb.MsgPreVote {
		c.tellSettled(m.from)
	}
	c.hear(r)
	return c.feed(r)
}

// persisted takes a response of the disk to this member.
func (c *core) persisted(m *raftpb.Message) error { return c.feed(m) }

func (c *core) feed(m *raftpb.Message) error {
	if err := c.node.Step(m); err != nil && !errors.Is(err, raft.ErrProposalDropped) && !errors.Is(err, raft.ErrStepPeerNotFound) {
		return fmt.Errorf("consensus: raft: %w", err)
	}
	return nil
}

func (c *core) tick() {
	c.tickRaft()
	c.tickStart()
	c.tickLearner()
	c.tickStreams()
	c.tickReads()
	c.tickMembership()
	c.tickTail()
}

// ready hands out what is to be done. nowMs is the wall clock, used if this server leads. Call it again until it is empty.
func (c *core) ready(nowMs int64) (output, error) {
	var out output
	c.nowMs = nowMs
	c.reuseRequests()
	for {
		if err := c.flush(&out, nowMs); err != nil {
			return output{}, err
		}
		if !c.node.HasReady() {
			break
		}
		if err := c.take(&out, c.node.Ready()); err != nil {
			return output{}, err
		}
	}
	out.messages, c.outbox = append(out.messages, c.outbox...), nil
	c.release(&out)
	return out, c.cut()
}

// take sorts what raft has ready.
func (c *core) take(out *output, rd raft.Ready) error {
	leader, role, term := c.leader, c.role, c.raftTerm
	if rd.SoftState != nil {
		c.leader, c.role = rd.SoftState.Lead, rd.SoftState.RaftState
	}
	if rd.HardState != nil {
		c.raftTerm = rd.HardState.GetTerm()
	}
	if c.leader != leader || c.role != role || c.raftTerm != term {
		c.reignChanged()
	}
	for _, rs := range rd.ReadStates {
		c.confirm(rs)
	}
	for _, m := range rd.Messages {
		switch {
		case m.GetTo() == raft.LocalAppendThread:
			out.appends = append(out.appends, m)
		case m.GetTo() == raft.LocalApplyThread:
			if err := c.handOut(out, m); err != nil {
				return err
			}
		case m.GetType() == raftpb.MsgSnap:
			out.checkpointsFor = append(out.checkpointsFor, m.GetTo())
		default:
			out.messages = append(out.messages, message{to: m.GetTo(), from: c.id, raft: m})
		}
	}
	return nil
}

// reignChanged: leader, role or term are others. What was on its way under another leader may be lost: it goes out again, and apply
// drops what arrives twice.
func (c *core) reignChanged() {
	c.own.again()
	c.heads, c.incoming, c.underWay = streams{}, nil, 0
	c.askAgain()
	c.member.reignChanged()
	clear(c.tail.pinned)
	if c.leader != raft.None {
		c.start.campaignIn, c.start.hurried = 0, false
	}
}

// current reports whether a leader is known and its first entry is applied.
func (c *core) current() bool { return c.leader != raft.None && c.term == c.raftTerm }

// flush sends off what waits: requests, reads, changes of the membership.
func (c *core) flush(out *output, nowMs int64) error {
	switch {
	case c.role == raft.StateLeader && c.current():
		// Not before: behind its first own entry a leader knows of each request whether it is in the log.
		if err := c.lead(nowMs); err != nil {
			return err
		}
		if err := c.steer(out); err != nil {
			return err
		}
	case c.role != raft.StateLeader && c.leader != raft.None:
		c.forward(out)
	}
	c.ask()
	c.form(out)
	return nil
}

// handOut turns committed entries into batches. The caller applies them before it calls ready again, so raft is told at
// once that they are applied.
func (c *core) handOut(out *output, m *raftpb.Message) error {
	for _, e := range m.GetEntries() {
		b, own, requests := Batch{Index: e.GetIndex(), NewTerm: e.GetTerm() != c.term}, c.own.first, len(c.requests)
		switch {
		case e.GetType() == raftpb.EntryConfChangeV2:
			if err := c.changeConf(e); err != nil {
				return err
			}
		case e.GetType() != raftpb.EntryNormal:
			return fmt.Errorf("consensus: entry %d is of type %v, which this version does not write", e.GetIndex(), e.GetType())
		case len(e.Data) > 0:
			timeMs, err := readBatch(e.Data, func(server, incarnation, number uint64, payload []byte) {
				c.accept(server, incarnation, number, payload)
			})
			if err != nil {
				return fmt.Errorf("entry %d: %w", e.GetIndex(), err)
			}
			b.Requests = c.requests[requests:len(c.requests):len(c.requests)]
			c.timeMs = max(c.timeMs, timeMs)
			if c.underWay > 0 && e.GetTerm() == c.raftTerm {
				c.underWay--
			}
		}
		b.TimeMs = c.timeMs
		c.applied, c.term = e.GetIndex(), e.GetTerm()
		c.tail.note(len(e.Data))
		if c.own.first == own {
			own = 0
		}
		out.batches, out.own = append(out.batches, b), append(out.own, own)
	}
	for _, r := range m.GetResponses() {
		if err := c.feed(r); err != nil {
			return err
		}
	}
	return nil
}

// reuseRequests forgets the requests of the last ready, which are applied by now.
func (c *core) reuseRequests() {
	if cap(c.requests) > maxKeptRequests {
		c.requests = nil
	}
	clear(c.requests)
	c.requests = c.requests[:0]
}

// accept adds a request of an entry to those of its batch, if it is the next one of its stream (C2).
func (c *core) accept(server, incarnation, number uint64, payload []byte) {
	if server == clusterStream {
		if c.cluster == 0 {
			c.cluster = decodeCluster(payload)
		}
		return
	}
	if !c.streams.accept(server, incarnation, number) {
		return
	}
	r := Request{Payload: payload}
	switch {
	case server != c.id:
	case incarnation == c.own.incarnation:
		r.Ref, _ = c.own.take(number)
	case incarnation > c.own.incarnation:
		c.own.renumber(leap(incarnation, c.random()))
	}
	c.requests = append(c.requests, r)
}

// incarnationBehind is that of this server's stream when the checkpoint is installed. Where the checkpoint knows of the present one or an
// older, the stream goes on: what is behind the checkpoint may be in the log already, under its numbers. A newer one is
// of an earlier life, of which the data is gone.
func (c *core) incarnationBehind(meta checkpointMeta) uint64 {
	if p := meta.Streams[c.id]; p.incarnation > c.own.incarnation {
		return leap(p.incarnation, c.random())
	}
	return c.own.incarnation
}

// installed takes over the state of a checkpoint that came from the leader and is on disk, before the response that
// says so is stepped. It returns the refs of requests of this server that are applied in it.
func (c *core) installed(meta checkpointMeta, incarnation uint64) (lost []any) {
	c.conf, c.cluster = meta.Conf, meta.Cluster
	c.streams = maps.Clone(meta.Streams)
	c.applied, c.term, c.timeMs = meta.Index, meta.Term, max(c.timeMs, meta.TimeMs)
	c.tail.reset()
	lost = c.own.skipTo(c.streams[c.id])
	if incarnation > c.own.incarnation {
		c.own.renumber(incarnation)
	}
	return lost
}

// meta is what a checkpoint says of the state as of the batches handed out so far.
func (c *core) meta() checkpointMeta {
	return checkpointMeta{
		Member: c.id, Cluster: c.cluster, Index: c.applied, Term: c.term, TimeMs: c.timeMs, Conf: c.conf, Streams: maps.Clone(c.streams),
	}
}
