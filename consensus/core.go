package consensus

import (
	"encoding/binary"
	"errors"
	"fmt"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

const (
	electionTicks = 10
	// maxBatchBytes bounds the requests of one entry; a single request may be larger.
	maxBatchBytes = 1 << 20
	// compactEntries and compactBytes: applied entries leave the memory in steps of this size, whichever is reached
	// first, because each step copies what stays.
	compactEntries = 1024
	compactBytes   = 4 << 20
)

// Batch is what the state machine applies in one step: the requests of one raft entry.
type Batch struct {
	Index   uint64 // of the raft entry
	NewTerm bool   // first entry of a new raft term
	TimeMs  int64  // the leader's wall clock, Unix milliseconds, never less than in the batch before (C6)
	// Requests are those that were accepted (C2), in order; it may be empty.
	Requests []Request
}

// Request is one request of a batch.
type Request struct {
	Payload []byte // as proposed; valid during Apply
	Ref     any    // as proposed, if this process proposed it, else nil
}

// output is what the core wants done, in this order: write appends (in order; when one and all before it are on disk, its
// responses go to whom they are addressed, those to this server to step), send messages, apply batches, run reads.
type output struct {
	appends  []*raftpb.Message
	messages []*raftpb.Message
	batches  []Batch
	reads    []func()
}

func (o *output) empty() bool {
	return len(o.appends)+len(o.messages)+len(o.batches)+len(o.reads) == 0
}

// core is raft plus the proposal streams. It does no I/O and is not safe for concurrent use.
type core struct {
	id      uint64
	node    *raft.RawNode
	storage *raft.MemoryStorage
	conf    *raftpb.ConfState

	own     own
	streams streams // applied so far

	applied  uint64 // index of the last entry that was handed out
	term     uint64 // of that entry
	timeMs   int64  // of the last batch that was handed out
	uncut    int    // bytes of applied entries still in storage
	keepTail bool   // followers may need applied entries

	leader uint64 // as raft sees it; 0: none
	role   raft.StateType

	waiting   []func()            // reads that no round carries yet
	rounds    map[uint64][]func() // reads by the round that carries them
	round     uint64
	confirmed []confirmedReads // rounds that are answered, waiting for apply
}

type confirmedReads struct {
	index uint64
	reads []func()
}

type coreConfig struct {
	id          uint64
	incarnation uint64
	storage     *raft.MemoryStorage
	state       checkpointMeta // what the state machine was restored from
	logger      raft.Logger
}

func newCore(cfg coreConfig) (*core, error) {
	node, err := raft.NewRawNode(&raft.Config{
		ID:                        cfg.id,
		ElectionTick:              electionTicks,
		HeartbeatTick:             1,
		Storage:                   cfg.storage,
		Applied:                   cfg.state.Index,
		AsyncStorageWrites:        true,
		MaxSizePerMsg:             maxBatchBytes,
		MaxInflightMsgs:           256,
		CheckQuorum:               true,
		PreVote:                   true,
		DisableProposalForwarding: true, // the streams forward, with numbers
		Logger:                    cfg.logger,
	})
	if err != nil {
		return nil, fmt.Errorf("consensus: start raft: %w", err)
	}
	s := make(streams, len(cfg.state.Streams))
	for id, p := range cfg.state.Streams {
		s[id] = p
	}
	return &core{
		id: cfg.id, node: node, storage: cfg.storage, conf: cfg.state.Conf,
		own: own{incarnation: cfg.incarnation, first: 1}, streams: s,
		applied: cfg.state.Index, term: cfg.state.Term, timeMs: cfg.state.TimeMs,
		keepTail: len(cfg.state.Conf.GetVoters())+len(cfg.state.Conf.GetLearners()) > 1,
		rounds:   make(map[uint64][]func()),
	}, nil
}

// start lets a server that is the only voter lead at once, instead of after an election timeout.
func (c *core) start() error {
	if v := c.conf.GetVoters(); len(v) == 1 && v[0] == c.id {
		return c.node.Campaign()
	}
	return nil
}

// propose appends a request to this server's stream. The payload must not change afterwards.
func (c *core) propose(payload []byte, ref any) {
	c.own.pending = append(c.own.pending, request{payload, ref})
}

// read runs f once the state machine has applied all that was committed anywhere when read was called.
func (c *core) read(f func()) { c.waiting = append(c.waiting, f) }

// step takes a message of a peer or a response of local storage.
func (c *core) step(m *raftpb.Message) error {
	if err := c.node.Step(m); err != nil && !errors.Is(err, raft.ErrProposalDropped) && !errors.Is(err, raft.ErrStepPeerNotFound) {
		return fmt.Errorf("consensus: raft: %w", err)
	}
	return nil
}

func (c *core) tick() { c.node.Tick() }

// ready hands out what is to be done. nowMs is the wall clock, used if this server leads. Call it again until it is empty.
func (c *core) ready(nowMs int64) (output, error) {
	if err := c.flush(nowMs); err != nil {
		return output{}, err
	}
	var out output
	for c.node.HasReady() {
		rd := c.node.Ready()
		if rd.SoftState != nil {
			c.roleChanged(rd.SoftState)
		}
		for _, rs := range rd.ReadStates {
			c.confirm(rs)
		}
		for _, m := range rd.Messages {
			switch m.GetTo() {
			case raft.LocalAppendThread:
				out.appends = append(out.appends, m)
			case raft.LocalApplyThread:
				if err := c.handOut(&out, m); err != nil {
					return output{}, err
				}
			default:
				out.messages = append(out.messages, m)
			}
		}
	}
	c.release(&out)
	return out, nil
}

// roleChanged notes leader and role. What was on its way under another leader may be lost: it goes out again, and apply
// drops what arrives twice.
func (c *core) roleChanged(s *raft.SoftState) {
	if c.leader != s.Lead || c.role != s.RaftState {
		c.own.proposed = 0
		for round, reads := range c.rounds {
			c.waiting = append(c.waiting, reads...)
			delete(c.rounds, round)
		}
	}
	c.leader, c.role = s.Lead, s.RaftState
}

// flush proposes what is pending as one entry, or several if it is much, and asks for a read round.
func (c *core) flush(nowMs int64) error {
	if c.role != raft.StateLeader {
		return nil
	}
	for c.own.proposed < len(c.own.pending) {
		g := group{server: c.id, incarnation: c.own.incarnation, first: c.own.first + uint64(c.own.proposed)}
		size := 0
		for _, r := range c.own.pending[c.own.proposed:] {
			if size += len(r.payload) + 5; size > maxBatchBytes && len(g.payloads) > 0 {
				break
			}
			g.payloads = append(g.payloads, r.payload)
		}
		entry := appendGroup(appendBatchHeader(make([]byte, 0, size+64), nowMs), &g)
		switch err := c.node.Propose(entry); {
		case errors.Is(err, raft.ErrProposalDropped):
			return nil // the next call tries again
		case err != nil:
			return fmt.Errorf("consensus: propose: %w", err)
		}
		c.own.proposed += len(g.payloads)
	}
	// A leader knows what was committed before its time when it has applied an entry of its own term. Raft itself waits for
	// that too, but not where there is only one voter.
	if len(c.waiting) > 0 && len(c.rounds) == 0 && c.current() {
		c.round++
		c.rounds[c.round] = c.waiting
		c.waiting = nil
		c.node.ReadIndex(binary.BigEndian.AppendUint64(nil, c.round))
	}
	return nil
}

// current reports whether a leader is known and its first entry is applied.
func (c *core) current() bool {
	return c.leader != raft.None && c.term == c.node.BasicStatus().HardState.GetTerm()
}

// confirm: the round's reads may run once its index is applied.
func (c *core) confirm(rs raft.ReadState) {
	if len(rs.RequestCtx) != 8 {
		return
	}
	round := binary.BigEndian.Uint64(rs.RequestCtx)
	if reads, ok := c.rounds[round]; ok {
		delete(c.rounds, round)
		c.confirmed = append(c.confirmed, confirmedReads{rs.Index, reads})
	}
}

// release hands out the reads whose index is applied with this output's batches.
func (c *core) release(out *output) {
	for len(c.confirmed) > 0 && c.confirmed[0].index <= c.applied {
		out.reads = append(out.reads, c.confirmed[0].reads...)
		c.confirmed = c.confirmed[1:]
	}
}

// handOut turns committed entries into batches. The caller applies them before it calls ready again, so raft is told at
// once that they are applied.
func (c *core) handOut(out *output, m *raftpb.Message) error {
	for _, e := range m.GetEntries() {
		b := Batch{Index: e.GetIndex(), NewTerm: e.GetTerm() != c.term}
		switch {
		case e.GetType() != raftpb.EntryNormal:
			return fmt.Errorf("consensus: entry %d is of type %v, which this version does not write", e.GetIndex(), e.GetType())
		case len(e.Data) > 0:
			timeMs, err := readBatch(e.Data, func(server, incarnation, number uint64, payload []byte) {
				if !c.streams.accept(server, incarnation, number) {
					return
				}
				r := Request{Payload: payload}
				if server == c.id && incarnation == c.own.incarnation {
					r.Ref, _ = c.own.take(number)
				}
				b.Requests = append(b.Requests, r)
			})
			if err != nil {
				return fmt.Errorf("entry %d: %w", e.GetIndex(), err)
			}
			c.timeMs = max(c.timeMs, timeMs)
		}
		b.TimeMs = c.timeMs
		c.applied, c.term = e.GetIndex(), e.GetTerm()
		c.uncut += len(e.Data)
		out.batches = append(out.batches, b)
	}
	for _, r := range m.GetResponses() {
		if err := c.step(r); err != nil {
			return err
		}
	}
	return c.cut()
}

// cut lets go of applied entries in memory that nobody needs.
func (c *core) cut() error {
	first, err := c.storage.FirstIndex()
	if err != nil {
		return err
	}
	if c.keepTail || c.applied < first || (c.applied-first < compactEntries && c.uncut < compactBytes) {
		return nil
	}
	c.uncut = 0
	return c.storage.Compact(c.applied)
}

// meta is what a checkpoint says of the state as of the batches handed out so far.
func (c *core) meta() checkpointMeta {
	s := make(streams, len(c.streams))
	for id, p := range c.streams {
		s[id] = p
	}
	return checkpointMeta{Member: c.id, Index: c.applied, Term: c.term, TimeMs: c.timeMs, Conf: c.conf, Streams: s}
}
