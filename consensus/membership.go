package consensus

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
	"google.golang.org/protobuf/proto"
)

type raftProgress = tracker.Progress

const (
	// caughtUp is how many entries a member may be behind to become a voter.
	caughtUp = 256
	// patienceTicks is how long members that shall become voters may stand still before it is decided without them.
	patienceTicks = 4 * electionTicks
)

// Target is the membership that raft is to come to. The leader adds who is missing as a learner, makes voters of those
// that have caught up, and removes who does not belong.
type Target struct {
	// Serial is not 0 while somebody waits to be told whether the target was reached; one for each such target.
	Serial           uint64
	Voters, Learners []uint64
}

// Steered tells that the target with this serial was reached, or that it can't be.
type Steered struct {
	Serial  uint64
	Reached bool
}

// membership is how the leader brings raft's configuration to the target. All but target, admitted and removed is forgotten when the
// leader changes: the next one looks for itself.
type membership struct {
	target   Target
	admitted map[uint64]uint64 // member: the nonce of the life that it was added for
	since    map[uint64]uint64 // member: index of the change that made it one, if this server saw it applied
	removed  map[uint64]bool   // member that was removed to be added for a new life
	joins    map[uint64]uint64 // member without state that asks to be let in: its nonce
	changing int               // ticks since a change was proposed that is not applied yet; 0: none
	idle     int               // ticks in which nobody who shall become a voter caught up any further
	behind   map[uint64]uint64 // member that had to catch up: what it had of the log
	silent   map[uint64]int    // member: ticks since it was heard from
	told     bool              // of the target's serial
	look     bool              // something may be to be done: after each tick, and when one of the above has changed
}

func newMembership() membership {
	return membership{admitted: make(map[uint64]uint64), since: make(map[uint64]uint64), removed: make(map[uint64]bool), joins: make(map[uint64]uint64),
		behind: make(map[uint64]uint64), silent: make(map[uint64]int)}
}

func (m *membership) reignChanged() {
	m.look = true
	m.changing, m.idle, m.told = 0, 0, false
	clear(m.behind)
	clear(m.silent)
}

// setTarget says where the membership is to go. All members are told the same, as they apply it.
func (c *core) setTarget(t Target) {
	if t.Serial != c.member.target.Serial {
		c.member.idle, c.member.told = 0, false
		clear(c.member.behind)
	}
	c.member.target, c.member.look = t, true
}

func (c *core) tickMembership() {
	if c.member.changing > 0 {
		if c.member.changing++; c.member.changing > 2*electionTicks {
			c.member.changing = 0 // raft drops a change silently that comes while another is on its way
		}
	}
	c.member.idle++
	c.member.look = true
	if c.role != raft.StateLeader {
		return
	}
	c.node.WithProgress(func(id uint64, _ raft.ProgressType, pr raftProgress) {
		if c.member.silent[id]++; pr.RecentActive {
			c.member.silent[id] = 0
		}
	})
}

// steer takes the next step towards the target, one configuration change at a time.
func (c *core) steer(out *output) error {
	m := &c.member
	if !m.look || m.changing > 0 || len(c.conf.GetVotersOutgoing()) > 0 {
		return nil
	}
	m.look = false
	if cc := c.readmit(); cc != nil {
		return c.change(cc)
	}
	t := m.target
	if len(t.Voters) == 0 {
		return nil
	}
	if cc := c.enroll(t); cc != nil {
		return c.change(cc)
	}
	ready, all, quorum := c.progress(t)
	switch {
	case t.Serial == 0 || all:
	case m.told:
		return nil
	case m.idle < patienceTicks:
		return nil
	case quorum:
		ready = t.Voters // a quorum of the new members works; the others come when they can
	default:
		m.told = true
		out.steered = append(out.steered, Steered{t.Serial, false})
		return nil
	}
	// Nobody goes before those who come are enough: all of them, or a quorum where the others don't move.
	cc := c.difference(t, ready, all || quorum && m.idle >= patienceTicks)
	if len(cc.Changes) > 0 && !slices.Contains(t.Voters, c.id) {
		// Who does not belong does not lead the others there. It must not end its own vote either: it may have entries
		// that those who stay lack, so that they don't get its vote, and it can't lead any more.
		if c.handOver(t.Voters) {
			return nil
		}
		cc.Changes = slices.DeleteFunc(cc.Changes, func(s *raftpb.ConfChangeSingle) bool { return s.GetNodeId() == c.id })
		if len(cc.Changes) == 0 {
			return nil
		}
	}
	switch {
	case len(cc.Changes) > 0:
		return c.change(cc)
	case t.Serial != 0 && !m.told:
		m.told = true
		out.steered = append(out.steered, Steered{t.Serial, true})
	}
	return nil
}

// readmit removes a member that has lost its state and then adds it as a learner: what it has promised before, by votes and
// acknowledgements, it does not know, so it counts no more until a quorum of the others has agreed on that. These are two changes,
// because in one, which raft makes a joint one, raft would go on with what it remembers of the member's log.
func (c *core) readmit() *raftpb.ConfChangeV2 {
	m := &c.member
	for _, id := range slices.Sorted(maps.Keys(m.joins)) {
		nonce := m.joins[id]
		switch {
		case id == c.id || c.inConf(id) && m.admitted[id] == nonce:
		case c.inConf(id) && !c.canSpare(id): // it asks again
		case c.inConf(id):
			return &raftpb.ConfChangeV2{
				Changes: []*raftpb.ConfChangeSingle{confChange(raftpb.ConfChangeRemoveNode, id)}, Context: appendAdmitted(nil, id, 0),
			}
		case m.removed[id] || slices.Contains(m.target.Voters, id) || slices.Contains(m.target.Learners, id):
			delete(m.joins, id)
			return &raftpb.ConfChangeV2{
				Changes: []*raftpb.ConfChangeSingle{confChange(raftpb.ConfChangeAddLearnerNode, id)}, Context: appendAdmitted(nil, id, nonce),
			}
		}
		delete(m.joins, id)
	}
	return nil
}

// canSpare reports whether a member may be removed to be let in again: nothing was heard of it in raft for a while, so the request is not a
// late one from before it had state, and those voters that are heard from are a quorum of those that stay.
func (c *core) canSpare(id uint64) bool {
	silent, active, voters := true, 0, 0
	c.node.WithProgress(func(other uint64, _ raft.ProgressType, pr raftProgress) {
		heard := other == c.id || pr.RecentActive
		switch {
		case other == id:
			silent = !heard
		case slices.Contains(c.conf.GetVoters(), other):
			voters++
			if heard {
				active++
			}
		}
	})
	return silent && active > voters/2
}

// enroll adds the members of the target that raft does not know, as learners.
func (c *core) enroll(t Target) *raftpb.ConfChangeV2 {
	cc := &raftpb.ConfChangeV2{}
	for _, id := range slices.Concat(t.Voters, t.Learners) {
		if !c.inConf(id) {
			cc.Changes = append(cc.Changes, confChange(raftpb.ConfChangeAddLearnerNode, id))
		}
	}
	if len(cc.Changes) == 0 {
		return nil
	}
	return cc
}

// progress says which of the target's voters may be voters now, whether all of them may, and whether a quorum of them may.
//
// Whether a member is there is not read off raft's RecentActive: each election timeout begins with nobody active, and what is decided in
// that moment would be decided without them.
func (c *core) progress(t Target) (ready []uint64, all, quorum bool) {
	m := &c.member
	moved := false
	c.node.WithProgress(func(id uint64, _ raft.ProgressType, pr raftProgress) {
		if !slices.Contains(t.Voters, id) {
			return
		}
		switch inStep := id == c.id || pr.State == tracker.StateReplicate && pr.Match+caughtUp >= c.applied; {
		case inStep && (id == c.id || m.silent[id] < electionTicks):
			ready = append(ready, id)
		case !inStep && pr.Match > m.behind[id]:
			m.behind[id], moved = pr.Match, true
		}
	})
	if moved || len(c.tail.pinned) > 0 {
		m.idle = 0
	}
	return ready, len(ready) == len(t.Voters), len(ready) > len(t.Voters)/2
}

// difference is the change from what is to the target, without making voters of those that are not ready.
//
// Who does not belong any more stays as a learner as long as it answers: so it applies the end of the change that removed it, which its
// clients may wait for, and serves them until it is stopped, as ZooKeeper's does.
func (c *core) difference(t Target, ready []uint64, mayGo bool) *raftpb.ConfChangeV2 {
	cc := &raftpb.ConfChangeV2{}
	add := func(typ raftpb.ConfChangeType, id uint64) { cc.Changes = append(cc.Changes, confChange(typ, id)) }
	for _, id := range t.Voters {
		if !slices.Contains(c.conf.GetVoters(), id) && slices.Contains(ready, id) {
			add(raftpb.ConfChangeAddNode, id)
		}
	}
	for _, id := range t.Learners {
		if mayGo && slices.Contains(c.conf.GetVoters(), id) {
			add(raftpb.ConfChangeAddLearnerNode, id)
		}
	}
	for _, id := range slices.Concat(c.conf.GetVoters(), c.conf.GetLearners()) {
		switch {
		case slices.Contains(t.Voters, id) || slices.Contains(t.Learners, id):
		case slices.Contains(c.conf.GetVoters(), id):
			if mayGo {
				add(raftpb.ConfChangeAddLearnerNode, id)
			}
		case c.member.silent[id] > patienceTicks:
			add(raftpb.ConfChangeRemoveNode, id)
		}
	}
	return cc
}

// handOver passes the lead to the voter among these that is most up to date. It returns false if there is none.
func (c *core) handOver(among []uint64) bool {
	var best, match uint64
	c.node.WithProgress(func(id uint64, _ raft.ProgressType, pr raftProgress) {
		if id != c.id && slices.Contains(among, id) && slices.Contains(c.conf.GetVoters(), id) && pr.RecentActive && pr.Match >= match {
			best, match = id, pr.Match
		}
	})
	if best == 0 {
		return false
	}
	c.node.TransferLeader(best)
	return true
}

func (c *core) change(cc *raftpb.ConfChangeV2) error {
	c.member.changing = 1
	if err := c.node.ProposeConfChange(cc); err != nil && !errors.Is(err, raft.ErrProposalDropped) {
		return fmt.Errorf("consensus: propose a change of the membership: %w", err)
	}
	return nil
}

// changeConf applies a configuration change.
func (c *core) changeConf(e *raftpb.Entry) error {
	var cc raftpb.ConfChangeV2
	if err := proto.Unmarshal(e.GetData(), &cc); err != nil {
		return fmt.Errorf("consensus: entry %d: configuration change: %w", e.GetIndex(), err)
	}
	if id, nonce, ok := decodeAdmitted(cc.GetContext()); ok && nonce == 0 {
		c.member.removed[id] = true
	} else if ok {
		delete(c.member.removed, id)
		c.member.admitted[id] = nonce
	}
	for _, change := range cc.GetChanges() {
		if id := change.GetNodeId(); !c.inConf(id) {
			c.member.since[id] = e.GetIndex()
		}
	}
	c.conf = c.node.ApplyConfChange(&cc)
	c.member.changing, c.member.idle, c.member.look = 0, 0, true
	return nil
}

// knows reports whether a checkpoint of that index knows the member. Raft installs none that does not.
func (c *core) knows(index, id uint64) bool { return index >= c.member.since[id] }

// settled names an entry that is committed.
type settled struct{ index, term uint64 }

// tellSettled answers a candidate that does not know yet that this member votes no more: how far the log is committed.
//
// Without it the candidate may need this vote and never get it. It led, sent what this member has, and lost the end of its own log in a
// crash together with the knowledge that the change is committed, which is on disk late. Then this log is the longer one.
func (c *core) tellSettled(candidate uint64) {
	if !slices.Contains(c.conf.GetVoters(), c.id) {
		c.outbox = append(c.outbox, message{to: candidate, from: c.id, settled: &settled{c.applied, c.term}})
	}
}

// settle hears what is committed. Raft takes it from a snapshot of an entry that stands in the log.
func (c *core) settle(from uint64, s *settled) error {
	term, err := c.storage.Term(s.index)
	if err != nil || term != s.term || s.index <= c.applied || c.leader != raft.None || c.start.fresh || !c.inConf(c.id) {
		return nil
	}
	err = c.feed(&raftpb.Message{
		Type: raftpb.MsgSnap.Enum(), To: &c.id, From: &from, Term: &c.raftTerm, Snapshot: snapshotOf(s.index, s.term, c.conf),
	})
	// Raft takes the sender for the leader now.
	if forget := c.node.ForgetLeader(); err == nil && forget != nil && !errors.Is(forget, raft.ErrProposalDropped) {
		err = fmt.Errorf("consensus: raft: %w", forget)
	}
	return err
}

func (c *core) inConf(id uint64) bool {
	return slices.Contains(c.conf.GetVoters(), id) || slices.Contains(c.conf.GetLearners(), id) ||
		slices.Contains(c.conf.GetVotersOutgoing(), id)
}

func confChange(typ raftpb.ConfChangeType, id uint64) *raftpb.ConfChangeSingle {
	return &raftpb.ConfChangeSingle{Type: typ.Enum(), NodeId: &id}
}

// appendAdmitted encodes the context of a change that lets a life of a member in, or, with nonce 0, removes it to that end.
func appendAdmitted(b []byte, id, nonce uint64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, id), nonce)
}

func decodeAdmitted(b []byte) (id, nonce uint64, ok bool) {
	if len(b) != 16 {
		return 0, 0, false
	}
	return binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:]), true
}
