package consensus

import (
	"encoding/binary"
	"slices"

	"github.com/cespare/xxhash/v2"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/gozkd/gozkd/consensus/internal/turn"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
)

// simChecks is the simulator's knowledge of the ensemble, from outside. It compares everything that
// a member applies with the entries that were applied first, and checks the invariants.
type simChecks struct {
	ref       []simApplied // by index; 0 is unused, 1 is the initial state
	stream    map[simLife]uint64
	lastLife  map[uint64]uint64 // by member: the newest life with an applied request
	acked     map[simLife]uint64
	leaderOf  map[uint64]simLife // by term
	entries   map[simEntry]simEntryFacts
	confs     []*raftpb.ConfState // the last memberships, newest at the end
	conf      Target              // initial
	confIndex uint64              // of the newest
	payload   []byte
}

type simApplied struct {
	batch  uint64 // hash of time, term change and requests
	digest uint64 // of the state after it
	timeMs int64
	level  Level
}

type simLife struct{ member, life uint64 }

type simEntry struct{ index, term uint64 }

type simEntryFacts struct{ data, prevTerm uint64 }

func newSimChecks() simChecks {
	return simChecks{
		ref:    []simApplied{{}, {digest: newSimMachine().digest(), level: simLevel}},
		stream: map[simLife]uint64{}, lastLife: map[uint64]uint64{}, acked: map[simLife]uint64{},
		leaderOf: map[uint64]simLife{}, entries: map[simEntry]simEntryFacts{},
	}
}

// last returns the highest applied index.
func (c *simChecks) last() uint64 { return uint64(len(c.ref) - 1) }

// leads checks that a term has one leader at most, in one life.
func (c *simChecks) leads(m *simMember) {
	m.w.stats.leaders++
	me := simLife{m.id, uint64(m.life)}
	if other, ok := c.leaderOf[m.core.RaftTerm()]; ok && other != me {
		m.w.fatalf("member %d leads term %d, which member %d led", m.id, m.core.RaftTerm(), other.member)
	}
	c.leaderOf[m.core.RaftTerm()] = me
}

// appending checks raft's log matching: entries with equal index and term are equal, and so are
// their predecessors.
func (c *simChecks) appending(m *simMember, work []turn.LogWork) {
	terms := map[uint64]uint64{}
	for _, item := range work {
		if item.Install != nil {
			clear(terms)
			terms[item.Install.Meta.Index] = item.Install.Meta.Term
		}
		for _, e := range item.Append.GetEntries() {
			index, term := e.GetIndex(), e.GetTerm()
			c.levelChange(m, e)
			terms[index] = term
			facts := simEntryFacts{data: xxhash.Sum64(e.GetData())}
			if prev, ok := terms[index-1]; ok {
				facts.prevTerm = prev
			} else if prev, err := m.storage.Term(index - 1); err == nil {
				facts.prevTerm = prev
			}
			known, ok := c.entries[simEntry{index, term}]
			if ok && (known.data != facts.data || known.prevTerm != facts.prevTerm && known.prevTerm != 0 && facts.prevTerm != 0) {
				m.w.fatalf("log matching: member %d writes entry %d of term %d, and it differs from another member's, or follows another entry", m.id, index, term)
			}
			if !ok || known.prevTerm == 0 {
				c.entries[simEntry{index, term}] = facts
			}
		}
	}
}

// promises checks that the promise of a message is durable before the message leaves (C1): raft
// answers an append in a term, or a vote, only when the log knows that term and that vote.
func (c *simChecks) promises(m *simMember, r *raftpb.Message) {
	written := m.writer.written
	switch r.GetType() {
	case raftpb.MsgAppResp:
		if r.GetTerm() > written.Term {
			m.w.fatalf("C1: member %d answers in term %d, but its log knows only term %d", m.id, r.GetTerm(), written.Term)
		}
		if last, err := m.storage.LastIndex(); err != nil || !r.GetReject() && r.GetTerm() == written.Term && r.GetIndex() > last {
			m.w.fatalf("C1: member %d acknowledges entry %d, but its log ends at %d, %v", m.id, r.GetIndex(), last, err)
		}
	case raftpb.MsgVoteResp:
		if r.GetTerm() > written.Term || !r.GetReject() && r.GetTerm() == written.Term && written.Vote != r.GetTo() {
			m.w.fatalf("C1: member %d votes for member %d in term %d, but its log knows of a vote for %d in term %d",
				m.id, r.GetTo(), r.GetTerm(), written.Vote, written.Term)
		}
	}
}

// state checks that the state of a checkpoint is that of its index (C4).
func (c *simChecks) state(m *simMember, index uint64) {
	if index > c.last() {
		m.w.fatalf("member %d has a checkpoint of index %d, but %d is the last that was applied", m.id, index, c.last())
	}
	if got, want := m.machine.digest(), c.ref[index].digest; got != want {
		m.w.fatalf("C4: member %d has a checkpoint of index %d with digest %x, it was %x", m.id, index, got, want)
	}
	m.applied = index
}

// apply lets a member apply a batch, and compares it with the batch of that index that was applied
// first.
func (c *simChecks) apply(m *simMember, b *Batch) {
	w := m.w
	if b.Index != m.applied+1 {
		w.fatalf("member %d applies entry %d after %d", m.id, b.Index, m.applied)
	}
	m.applied = b.Index
	now := simApplied{batch: c.hash(b), timeMs: b.TimeMs, level: b.Level}
	first := b.Index == uint64(len(c.ref))
	switch {
	case b.Index > uint64(len(c.ref)):
		w.fatalf("member %d applies entry %d, but no member applied %d", m.id, b.Index, len(c.ref))
	case !first && c.ref[b.Index].batch != now.batch:
		w.fatalf("member %d applies another entry %d than others did", m.id, b.Index)
	case first:
		c.quorum(m, b.Index)
		if last := c.ref[b.Index-1].timeMs; b.TimeMs < last {
			w.fatalf("C6: entry %d has time %d after %d", b.Index, b.TimeMs, last)
		}
		if last := c.ref[b.Index-1].level; b.Level < last {
			w.fatalf("entry %d has level %d after %d", b.Index, b.Level, last)
		} else if b.Level > last {
			w.stats.activated++
		}
	}
	if b.NewTerm {
		m.machine.tree.SetLastZxid(m.machine.tree.LastZxid().NextEpoch())
	}
	for i := range b.Requests {
		c.request(m, b, &b.Requests[i], first)
	}
	now.digest = m.machine.digest()
	if first {
		c.ref = append(c.ref, now)
		w.stats.applied += len(b.Requests)
	} else if want := c.ref[b.Index].digest; now.digest != want {
		w.fatalf("member %d has digest %x after entry %d, others have %x", m.id, now.digest, b.Index, want)
	}
}

func (c *simChecks) hash(b *Batch) uint64 {
	p := binary.BigEndian.AppendUint64(c.payload[:0], uint64(b.TimeMs))
	p = binary.AppendUvarint(p, uint64(b.Level))
	if b.NewTerm {
		p = append(p, 1)
	}
	for i := range b.Requests {
		p = binary.AppendUvarint(p, uint64(len(b.Requests[i].Payload)))
		p = append(p, b.Requests[i].Payload...)
	}
	c.payload = p
	return xxhash.Sum64(p)
}

// request applies one request and answers it.
func (c *simChecks) request(m *simMember, b *Batch, r *Request, first bool) {
	w := m.w
	req, ok := decodeSimRequest(r.Payload)
	if !ok {
		w.fatalf("entry %d holds the request %x", b.Index, r.Payload)
	}
	life := simLife{req.member, req.life}
	if first {
		switch {
		case req.number != c.stream[life]+1:
			w.fatalf("C2: request %d of member %d in life %d is applied after request %d", req.number, req.member, req.life, c.stream[life])
		case req.life < c.lastLife[req.member]:
			w.fatalf("C2: a request of life %d of member %d is applied after one of life %d", req.life, req.member, c.lastLife[req.member])
		}
		c.stream[life], c.lastLife[req.member] = req.number, req.life
	}
	if req.kind == kindLevel2 {
		w.stats.levelRequests++
		if b.Level < 2 || !m.levels.Has(2) {
			w.fatalf("member %d, of a version with level %v, applies a request of level 2 in entry %d, at level %d", m.id, m.levels, b.Index, b.Level)
		}
	}
	judge := func(*datatree.Result) {}
	if req.kind == kindTree || req.kind == kindExpire {
		judge = c.limitApplied(m, &req, first)
	}
	res, err := m.machine.apply(b.TimeMs, &req)
	w.must(err)
	judge(&res)
	switch {
	case req.kind == kindTarget:
		m.core.SetTarget(m.machine.target)
	case req.kind == kindExpire && res.Err == proto.OK && first:
		w.stats.expired++
	case req.kind == kindExpire && res.Err == proto.ErrBadVersion && first:
		w.stats.lateExpiries++
	}
	// Refs come back in order, only in the life that proposed them.
	if req.member != m.id || req.life != uint64(m.life) {
		if r.Ref != nil {
			w.fatalf("member %d: request %d of member %d, life %d comes with ref %v", m.id, req.number, req.member, req.life, r.Ref)
		}
		return
	}
	if r.Ref != req.number || req.number != m.answered+1 && w.bug != bugReplyBeforeCommit {
		w.fatalf("member %d: request %d comes with ref %v after answer %d", m.id, req.number, r.Ref, m.answered)
	}
	m.answered = max(m.answered, req.number)
	c.acknowledge(m, req.number)
}

// acknowledge notes that a client received the answer.
func (c *simChecks) acknowledge(m *simMember, number uint64) {
	m.w.stats.acknowledged++
	life := simLife{m.id, uint64(m.life)}
	c.acked[life] = max(c.acked[life], number)
}

// nothingLost checks that every answered request is applied.
func (c *simChecks) nothingLost(w *simWorld) {
	for life, number := range c.acked {
		if c.stream[life] < number {
			w.fatalf("request %d of member %d in life %d was answered, but only %d of them are applied", number, life.member, life.life, c.stream[life])
		}
	}
}

// quorum checks that an applied entry is on the disks of a quorum of the voters of its time (C1). A
// leader may not have applied the last change of the membership yet, so the previous membership is
// accepted too.
func (c *simChecks) quorum(m *simMember, index uint64) {
	c.noteConf(m)
	for _, conf := range c.confs {
		if c.majority(m.w, conf.GetVoters(), index) && c.majority(m.w, conf.GetVotersOutgoing(), index) {
			return
		}
	}
	var logs string
	for _, m := range m.w.members {
		logs += "\n" + m.String()
	}
	m.w.fatalf("C1: entry %d is applied by member %d, and not on the disks of a quorum of %v:%s", index, m.id, c.confs[len(c.confs)-1], logs)
}

// noteConf keeps the last memberships.
func (c *simChecks) noteConf(m *simMember) {
	conf := m.core.Conf()
	same := func(known *raftpb.ConfState) bool { return conf == known || conf.Equivalent(known) == nil }
	if n := len(c.confs); n > 0 && same(c.confs[n-1]) {
		return
	}
	m.w.stats.confChanges++
	c.confIndex = m.applied
	c.confs = append(slices.DeleteFunc(c.confs, same), conf)
	if len(c.confs) > 4 {
		c.confs = c.confs[1:]
	}
}

func (c *simChecks) majority(w *simWorld, voters []uint64, index uint64) bool {
	n := 0
	for _, id := range voters {
		if w.members[id-1].holds(index) {
			n++
		}
	}
	return n > len(voters)/2 || len(voters) == 0
}

// holds reports whether the log on disk holds the applied entry of that index. Raft's log in memory
// gets entries only when they are on disk, and is read from there at each start.
func (m *simMember) holds(index uint64) bool {
	if m.storage == nil {
		return false
	}
	if m.emptied {
		return true // it did, when its acknowledgement counted
	}
	last, err := m.storage.LastIndex()
	return err == nil && last >= index
}

func contains(ids []uint64, id uint64) bool { return slices.Contains(ids, id) }
