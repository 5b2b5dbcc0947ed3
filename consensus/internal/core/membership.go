package core

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
	// caughtUpEntries is how many entries a member may lack to become a voter.
	caughtUpEntries = 256
	// patienceTicks is how long the members that are to become voters may make no progress before
	// the leader decides without them.
	patienceTicks = 4 * electionTicks
)

// Target is the membership that raft's configuration is to reach. The leader adds missing members
// as learners, promotes those that have caught up, and removes members that do not belong, a step
// at a time:
//
//  1. A member that lost its state, or whose state is older than its acknowledgements, is removed
//     and added again (startup).
//  2. A missing member is added as a learner, and so is a connected member that was not requested:
//     it follows until it is silent.
//  3. When the learners that shall vote lack at most caughtUpEntries entries, the rest becomes a
//     raft change, joint if it touches more than one voter. If a client waits for the change, all
//     learners must have caught up, or a quorum of the new voters when the others made no progress
//     for patienceTicks. Without such a quorum the change is refused, and the target reverts. A
//     removed member first becomes a learner and is removed when it no longer answers, so that its
//     clients get their replies.
//  4. A leader outside the new voters transfers leadership to one of them.
type Target struct {
	// Serial is not 0 while a client waits to be told whether the target was reached. Each such
	// target has a serial of its own.
	Serial           uint64
	Voters, Learners []uint64
}

// Reconciled says that the target with this serial was reached, or cannot be reached.
type Reconciled struct {
	Serial  uint64
	Reached bool
}

// membership holds the target and how far the leader has brought raft's configuration to it. The
// progress of a change and of the members is forgotten when the leader changes: the next leader
// measures progress anew.
type membership struct {
	target        Target
	admitted      map[uint64]uint64 // by member: the nonce of the life that it was added for
	addedAt       map[uint64]uint64 // by member: index of the change that added it, if this server saw it applied
	removedToJoin map[uint64]bool   // members that were removed in order to be added for a new life
	joinNonces    map[uint64]uint64 // by member without state that asks to be let in: its nonce
	changeTicks   int               // ticks since a change was proposed that is not applied yet; 0: none
	idleTicks     int               // ticks in which no future voter made progress
	bestMatch     map[uint64]uint64 // by member that had to catch up: its Match
	silentTicks   map[uint64]int    // by member: ticks since it was heard from
	withState     map[uint64]bool   // members that had a state when they last connected
	reported      bool              // the result of the target's serial was handed out
	checkDue      bool              // a step may be due: set by each tick, and when a field above has changed
}

func newMembership() membership {
	return membership{admitted: make(map[uint64]uint64), addedAt: make(map[uint64]uint64), removedToJoin: make(map[uint64]bool), joinNonces: make(map[uint64]uint64),
		bestMatch: make(map[uint64]uint64), silentTicks: make(map[uint64]int), withState: make(map[uint64]bool)}
}

func (m *membership) leadershipChanged() {
	m.checkDue = true
	m.changeTicks, m.idleTicks, m.reported = 0, 0, false
	clear(m.bestMatch)
	clear(m.silentTicks)
}

// SetTarget sets the membership to reach. All members are given the same target, as they apply it.
func (c *Core) SetTarget(t Target) {
	if t.Serial != c.membership.target.Serial {
		c.membership.idleTicks, c.membership.reported = 0, false
		clear(c.membership.bestMatch)
	}
	c.membership.target, c.membership.checkDue = t, true
	c.levels.checkDue = true
}

func (c *Core) tickMembership() {
	if c.membership.changeTicks > 0 {
		if c.membership.changeTicks++; c.membership.changeTicks > 2*electionTicks {
			c.membership.changeTicks = 0 // raft silently drops a change that comes while another is under way
		}
	}
	c.membership.idleTicks++
	c.membership.checkDue = true
	if c.role != raft.StateLeader {
		return
	}
	c.raft.WithProgress(func(id uint64, _ raft.ProgressType, pr raftProgress) {
		if c.membership.silentTicks[id]++; pr.RecentActive {
			c.membership.silentTicks[id] = 0
		}
	})
}

// reconcile takes the next step towards the target, one configuration change at a time.
func (c *Core) reconcile(out *Output) error {
	m := &c.membership
	if !m.checkDue || m.changeTicks > 0 || len(c.conf.GetVotersOutgoing()) > 0 {
		return nil
	}
	m.checkDue = false
	if cc := c.readmit(); cc != nil {
		return c.proposeConfChange(cc)
	}
	t := m.target
	if len(t.Voters) == 0 {
		return nil
	}
	if cc := c.addMissing(t); cc != nil {
		return c.proposeConfChange(cc)
	}
	ready, all, quorum := c.readyVoters(t)
	switch {
	case t.Serial == 0 || all:
	case m.reported:
		return nil
	case m.idleTicks < patienceTicks:
		return nil
	case quorum:
		ready = t.Voters // a quorum of the new members works; the others follow when they can
	default:
		m.reported = true
		out.Reconciled = append(out.Reconciled, Reconciled{t.Serial, false})
		return nil
	}
	// No voter is removed before enough new voters are ready: all of them, or a quorum if the
	// others make no progress.
	cc := c.difference(t, ready, all || quorum && m.idleTicks >= patienceTicks)
	if len(cc.Changes) > 0 && !slices.Contains(t.Voters, c.id) {
		// A leader outside the target must not complete the change itself, nor end its own vote: if
		// this leader has entries that the remaining voters lack, they don't get its vote, and it
		// could no longer lead.
		if c.transferLeadership(t.Voters) != 0 {
			return nil
		}
		cc.Changes = slices.DeleteFunc(cc.Changes, func(s *raftpb.ConfChangeSingle) bool { return s.GetNodeId() == c.id })
		if len(cc.Changes) == 0 {
			return nil
		}
	}
	switch {
	case len(cc.Changes) > 0:
		return c.proposeConfChange(cc)
	case t.Serial != 0 && !m.reported:
		m.reported = true
		out.Reconciled = append(out.Reconciled, Reconciled{t.Serial, true})
	}
	return nil
}

// SetPeerState says whether a member that connects has a state.
func (c *Core) SetPeerState(id uint64, has bool) { c.membership.withState[id] = has }

// readmit removes a member that has lost its state, and then adds it as a learner. The member does
// not know its earlier promises, the votes and acknowledgements, so it must not count until a
// quorum of the others has agreed on that. These are two changes: in a single change, a joint
// change, raft would go on with its old knowledge of the member's log.
func (c *Core) readmit() *raftpb.ConfChangeV2 {
	m := &c.membership
	for _, id := range slices.Sorted(maps.Keys(m.joinNonces)) {
		nonce := m.joinNonces[id]
		switch {
		case id == c.id || c.inConf(id) && m.admitted[id] == nonce:
		case c.inConf(id) && !c.canSpare(id): // the member asks again
		case c.inConf(id):
			return &raftpb.ConfChangeV2{
				Changes: []*raftpb.ConfChangeSingle{confChange(raftpb.ConfChangeRemoveNode, id)}, Context: appendAdmitted(nil, id, 0),
			}
		default: // also if the target does not contain it
			delete(m.joinNonces, id)
			return &raftpb.ConfChangeV2{
				Changes: []*raftpb.ConfChangeSingle{confChange(raftpb.ConfChangeAddLearnerNode, id)}, Context: appendAdmitted(nil, id, nonce),
			}
		}
		delete(m.joinNonces, id)
	}
	return nil
}

// canSpare reports whether a member may be removed in order to be let in again. Raft must not have
// heard from the member for a while; otherwise its request may be late, from before it had state.
// And the active voters must be a quorum of those that remain.
func (c *Core) canSpare(id uint64) bool {
	silent, active, voters := true, 0, 0
	c.raft.WithProgress(func(other uint64, _ raft.ProgressType, pr raftProgress) {
		recent := other == c.id || pr.RecentActive
		switch {
		case other == id:
			silent = !recent
		case c.isVoter(other):
			voters++
			if recent {
				active++
			}
		}
	})
	return silent && active > voters/2
}

// addMissing adds the members of the target that raft does not know, as learners, and those that
// are connected: a member that the target does not contain yet, or no longer, follows as long as it
// answers (see difference).
func (c *Core) addMissing(t Target) *raftpb.ConfChangeV2 {
	cc := &raftpb.ConfChangeV2{}
	missing := slices.Concat(t.Voters, t.Learners)
	for _, id := range slices.Sorted(maps.Keys(c.start.connected)) {
		if c.membership.withState[id] && !slices.Contains(missing, id) {
			missing = append(missing, id)
		}
	}
	for _, id := range missing {
		if !c.inConf(id) {
			cc.Changes = append(cc.Changes, confChange(raftpb.ConfChangeAddLearnerNode, id))
		}
	}
	if len(cc.Changes) == 0 {
		return nil
	}
	return cc
}

// readyVoters returns the target's voters that may be voters now, whether these are all of them,
// and whether they are a quorum of them.
//
// Raft's RecentActive does not tell whether a member is there: each election timeout begins with no
// member active, and a decision at that moment would be made without them.
func (c *Core) readyVoters(t Target) (ready []uint64, all, quorum bool) {
	m := &c.membership
	progressed := false
	c.raft.WithProgress(func(id uint64, _ raft.ProgressType, pr raftProgress) {
		if !slices.Contains(t.Voters, id) {
			return
		}
		switch inStep := id == c.id || pr.State == tracker.StateReplicate && pr.Match+caughtUpEntries >= c.applied; {
		case inStep && (id == c.id || m.silentTicks[id] < electionTicks):
			ready = append(ready, id)
		case !inStep && pr.Match > m.bestMatch[id]:
			m.bestMatch[id], progressed = pr.Match, true
		}
	})
	if progressed || len(c.retention.pinned) > 0 {
		m.idleTicks = 0
	}
	return ready, len(ready) == len(t.Voters), len(ready) > len(t.Voters)/2
}

// difference returns the change from the current configuration to the target, without promoting
// members that are not ready, and without removing voters unless mayRemove.
//
// A member outside the target stays as a learner while it answers. So the member applies the end of
// the change that removed it, which its clients may wait for, and serves them until it is stopped,
// as in ZooKeeper.
func (c *Core) difference(t Target, ready []uint64, mayRemove bool) *raftpb.ConfChangeV2 {
	cc := &raftpb.ConfChangeV2{}
	add := func(typ raftpb.ConfChangeType, id uint64) { cc.Changes = append(cc.Changes, confChange(typ, id)) }
	for _, id := range t.Voters {
		if !c.isVoter(id) && slices.Contains(ready, id) {
			add(raftpb.ConfChangeAddNode, id)
		}
	}
	for _, id := range t.Learners {
		if mayRemove && c.isVoter(id) {
			add(raftpb.ConfChangeAddLearnerNode, id)
		}
	}
	for _, id := range slices.Concat(c.conf.GetVoters(), c.conf.GetLearners()) {
		switch {
		case slices.Contains(t.Voters, id) || slices.Contains(t.Learners, id):
		case c.isVoter(id):
			if mayRemove {
				add(raftpb.ConfChangeAddLearnerNode, id)
			}
		case c.membership.silentTicks[id] > patienceTicks:
			add(raftpb.ConfChangeRemoveNode, id)
		}
	}
	return cc
}

// HandOver passes leadership to the voter to, or, if to is 0, to the most up-to-date other voter.
// HandOver returns false if this member does not lead, or the voter cannot take over now.
func (c *Core) HandOver(to uint64) bool {
	among := c.conf.GetVoters()
	if to != 0 {
		among = []uint64{to}
	}
	return c.role == raft.StateLeader && c.transferLeadership(among) != 0
}

// transferLeadership passes leadership to one of these members, and returns 0 if none can take
// over. Only a voter with everything that is applied here can: one that lacks entries for longer
// than a moment has a log that hangs, or is slow, and raft would accept no proposals while it waits
// for that voter. Of several, transferLeadership takes the most up-to-date one of those with the
// fewest offers.
func (c *Core) transferLeadership(among []uint64) uint64 {
	var best, match uint64
	offers := c.stall.offers
	c.raft.WithProgress(func(id uint64, _ raft.ProgressType, pr raftProgress) {
		if id == c.id || !slices.Contains(among, id) || !c.isVoter(id) || !pr.RecentActive || pr.Match < c.applied {
			return
		}
		if best == 0 || offers[id] < offers[best] || offers[id] == offers[best] && pr.Match >= match {
			best, match = id, pr.Match
		}
	})
	if best != 0 {
		c.raft.TransferLeader(best)
	}
	return best
}

func (c *Core) proposeConfChange(cc *raftpb.ConfChangeV2) error {
	c.membership.changeTicks = 1
	if err := c.raft.ProposeConfChange(cc); err != nil && !errors.Is(err, raft.ErrProposalDropped) {
		return fmt.Errorf("consensus: propose a change of the membership: %w", err)
	}
	return nil
}

func (c *Core) applyConfChange(e *raftpb.Entry) error {
	var cc raftpb.ConfChangeV2
	if err := proto.Unmarshal(e.GetData(), &cc); err != nil {
		return fmt.Errorf("consensus: entry %d: configuration change: %w", e.GetIndex(), err)
	}
	if id, nonce, ok := decodeAdmitted(cc.GetContext()); ok && nonce == 0 {
		c.membership.removedToJoin[id] = true
	} else if ok {
		delete(c.membership.removedToJoin, id)
		c.membership.admitted[id] = nonce
	}
	for _, change := range cc.GetChanges() {
		if id := change.GetNodeId(); !c.inConf(id) {
			c.membership.addedAt[id] = e.GetIndex()
			delete(c.membership.silentTicks, id)
		}
	}
	c.conf = c.raft.ApplyConfChange(&cc)
	c.membership.changeTicks, c.membership.idleTicks, c.membership.checkDue = 0, 0, true
	c.levels.checkDue = true
	return nil
}

// CheckpointKnows reports whether a checkpoint of that index knows the member. Raft installs no
// snapshot that does not know the member.
func (c *Core) CheckpointKnows(index, id uint64) bool { return index >= c.membership.addedAt[id] }

// AdmittedLife reports whether the member was let in for the life with this nonce.
func (c *Core) AdmittedLife(id, nonce uint64) bool { return c.membership.admitted[id] == nonce }

// Joining reports whether this member leads, and members without state ask to be let in.
func (c *Core) Joining() bool { return c.role == raft.StateLeader && len(c.membership.joinNonces) > 0 }

// commitNotice names an entry that is committed.
type commitNotice struct{ index, term uint64 }

// sendCommitNotice tells a candidate how far the log is committed, if this member is no voter and
// the candidate may not know that yet.
//
// Otherwise the candidate may need this vote and never get it. Suppose that the candidate led, sent
// entries that this member has, and lost the end of its own log in a crash, together with the
// knowledge that the change is committed, which reaches the disk late. Then this member's log is
// longer.
func (c *Core) sendCommitNotice(candidate uint64) {
	if !c.Voter() {
		c.wire.outbox = append(c.wire.outbox, Message{To: candidate, From: c.id, commit: &commitNotice{c.applied, c.appliedTerm}})
	}
}

// handleCommitNotice takes over the commit index. Raft accepts it as a snapshot of an entry that is
// in the log.
func (c *Core) handleCommitNotice(from uint64, s *commitNotice) error {
	term, err := c.storage.Term(s.index)
	if err != nil || term != s.term || s.index <= c.applied || c.leader != raft.None || !c.takesPart() || !c.inConf(c.id) {
		return nil
	}
	err = c.feed(&raftpb.Message{
		Type: raftpb.MsgSnap.Enum(), To: &c.id, From: &from, Term: &c.raftTerm, Snapshot: Snapshot(s.index, s.term, c.conf),
	})
	// Raft now takes the sender for the leader.
	if forget := c.raft.ForgetLeader(); err == nil && forget != nil && !errors.Is(forget, raft.ErrProposalDropped) {
		err = fmt.Errorf("consensus: raft: %w", forget)
	}
	return err
}

func (c *Core) inConf(id uint64) bool {
	return c.isVoter(id) || slices.Contains(c.conf.GetLearners(), id) || slices.Contains(c.conf.GetVotersOutgoing(), id)
}

func confChange(typ raftpb.ConfChangeType, id uint64) *raftpb.ConfChangeSingle {
	return &raftpb.ConfChangeSingle{Type: typ.Enum(), NodeId: &id}
}

// appendAdmitted encodes the context of a change that lets a life of a member in or, with nonce 0,
// that removes the member so that it can be let in.
func appendAdmitted(b []byte, id, nonce uint64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, id), nonce)
}

func decodeAdmitted(b []byte) (id, nonce uint64, ok bool) {
	if len(b) != 16 {
		return 0, 0, false
	}
	return binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:]), true
}
