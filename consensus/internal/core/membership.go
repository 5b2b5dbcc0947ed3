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
	patienceTicks = 4 * ElectionTicks
)

// Target is the membership that raft's configuration is to reach. The leader adds missing members
// as learners, promotes those that have caught up, and removes members that do not belong, a step
// at a time:
//
//  1. A member that lost its state, or whose state is older than its acknowledgements, is removed
//     and added again (Admission).
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

// Membership holds the target, and how near to the target the leader has brought raft's
// configuration. Membership alone proposes and applies changes of the configuration, one at a time.
// The progress of a change and of the members is forgotten when the leader changes: the next leader
// measures progress anew.
type Membership struct {
	*raftState
	stall       *LogStall
	retention   *Retention
	target      Target
	admitted    map[uint64]uint64 // by member: the nonce of the life that it was added for
	addedAt     map[uint64]uint64 // by member: index of the change that added it, if this server saw it applied
	joinNonces  map[uint64]uint64 // by member without state that asks to be let in: its nonce
	changeTicks int               // ticks since a change was proposed that is not applied yet; 0: none
	idleTicks   int               // ticks in which no future voter made progress
	bestMatch   map[uint64]uint64 // by member that had to catch up: its Match
	silentTicks map[uint64]int    // by member: ticks since it was heard from
	withState   map[uint64]bool   // members that had a state when they last connected, or have one since
	reported    bool              // the result of the target's serial was handed out
	checkDue    bool              // a step may be due: set by each tick, and when a field above has changed
}

func newMembership(m *raftState, stall *LogStall, retention *Retention) *Membership {
	return &Membership{
		raftState: m, stall: stall, retention: retention,
		admitted: make(map[uint64]uint64), addedAt: make(map[uint64]uint64), joinNonces: make(map[uint64]uint64),
		bestMatch: make(map[uint64]uint64), silentTicks: make(map[uint64]int), withState: make(map[uint64]bool),
	}
}

func (m *Membership) leadershipChanged() {
	m.checkDue = true
	m.changeTicks, m.idleTicks, m.reported = 0, 0, false
	clear(m.bestMatch)
	clear(m.silentTicks)
}

func (m *Membership) setTarget(t Target) {
	if t.Serial != m.target.Serial {
		m.idleTicks, m.reported = 0, false
		clear(m.bestMatch)
	}
	m.target, m.checkDue = t, true
}

func (m *Membership) tick() {
	if m.changeTicks > 0 {
		if m.changeTicks++; m.changeTicks > 2*ElectionTicks {
			m.changeTicks = 0 // raft silently drops a change that comes while another is under way
		}
	}
	m.idleTicks++
	m.checkDue = true
	if m.role != raft.StateLeader {
		return
	}
	m.raft.WithProgress(func(id uint64, _ raft.ProgressType, pr raftProgress) {
		if m.silentTicks[id]++; pr.RecentActive {
			m.silentTicks[id] = 0
		}
	})
}

// silentFor returns for how many ticks a member has not been heard from, as far as a leader knows.
func (m *Membership) silentFor(id uint64) int { return m.silentTicks[id] }

// reconcile takes the next step towards the target, one configuration change at a time.
func (m *Membership) reconcile(out *Output) error {
	if !m.checkDue || m.changeTicks > 0 || len(m.conf.GetVotersOutgoing()) > 0 {
		return nil
	}
	m.checkDue = false
	if cc := m.readmit(); cc != nil {
		return m.proposeConfChange(cc)
	}
	t := m.target
	if len(t.Voters) == 0 {
		return nil
	}
	if cc := m.addMissing(t); cc != nil {
		return m.proposeConfChange(cc)
	}
	ready, all, quorum := m.readyVoters(t)
	switch {
	case t.Serial == 0 || all:
	case m.reported || m.idleTicks < patienceTicks:
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
	cc := m.difference(t, ready, all || quorum && m.idleTicks >= patienceTicks)
	if len(cc.Changes) > 0 && !slices.Contains(t.Voters, m.id) {
		// A leader outside the target must not complete the change itself, nor end its own vote: if
		// this leader has entries that the remaining voters lack, they don't get its vote, and it
		// could no longer lead.
		if m.stall.transferLeadership(t.Voters) != 0 {
			return nil
		}
		own := func(s *raftpb.ConfChangeSingle) bool { return s.GetNodeId() == m.id }
		cc.Changes = slices.DeleteFunc(cc.Changes, own)
		if len(cc.Changes) == 0 {
			return nil
		}
	}
	switch {
	case len(cc.Changes) > 0:
		return m.proposeConfChange(cc)
	case t.Serial != 0 && !m.reported:
		m.reported = true
		out.Reconciled = append(out.Reconciled, Reconciled{t.Serial, true})
	}
	return nil
}

// SetPeerState says whether a member that connects has a state.
func (m *Membership) SetPeerState(id uint64, has bool) { m.withState[id] = has }

// noteState notes that a member takes part in raft, or has a state. One that stood still while it
// got its first checkpoint may have been removed meanwhile, and has connected without a state.
func (m *Membership) noteState(id uint64) {
	if m.connected[id] == connectionFresh {
		m.connected[id] = connectionUp
	}
	if !m.inConf(id) && !m.withState[id] {
		m.withState[id], m.checkDue = true, true
	}
}

// readmit removes a member that has lost its state, and then adds it as a learner. The member does
// not know its earlier promises, the votes and acknowledgements, so it must not count until a
// quorum of the others has agreed on that. These are two changes: in a single change, a joint
// change, raft would go on with its old knowledge of the member's log.
func (m *Membership) readmit() *raftpb.ConfChangeV2 {
	for _, id := range slices.Sorted(maps.Keys(m.joinNonces)) {
		nonce := m.joinNonces[id]
		switch {
		case m.inConf(id) && m.admitted[id] == nonce:
		case m.inConf(id) && !m.canSpare(id): // the member asks again
		case m.inConf(id):
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
// heard from the member for an election timeout; otherwise its request may be late, from before it
// had state. And the active voters must be a quorum of those that remain.
func (m *Membership) canSpare(id uint64) bool {
	active, voters := 0, 0
	m.raft.WithProgress(func(other uint64, _ raft.ProgressType, pr raftProgress) {
		if other != id && m.isVoter(other) {
			voters++
			if pr.RecentActive { // the leader itself always is
				active++
			}
		}
	})
	return m.silentTicks[id] >= ElectionTicks && active > voters/2
}

// addMissing adds the members of the target that raft does not know, as learners, and those that
// are connected: a member that the target does not contain yet, or no longer, follows as long as it
// answers (see difference).
func (m *Membership) addMissing(t Target) *raftpb.ConfChangeV2 {
	cc := &raftpb.ConfChangeV2{}
	missing := slices.Concat(t.Voters, t.Learners)
	for _, id := range slices.Sorted(maps.Keys(m.connected)) {
		if m.withState[id] && !slices.Contains(missing, id) {
			missing = append(missing, id)
		}
	}
	for _, id := range missing {
		if !m.inConf(id) {
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
func (m *Membership) readyVoters(t Target) (ready []uint64, all, quorum bool) {
	progressed := false
	m.raft.WithProgress(func(id uint64, _ raft.ProgressType, pr raftProgress) {
		if !slices.Contains(t.Voters, id) {
			return
		}
		switch inStep := pr.State == tracker.StateReplicate && pr.Match+caughtUpEntries >= m.applied; {
		case inStep && m.silentTicks[id] < ElectionTicks: // as the leader itself always is
			ready = append(ready, id)
		case !inStep && pr.Match > m.bestMatch[id]:
			m.bestMatch[id], progressed = pr.Match, true
		}
	})
	if progressed || m.retention.serving() {
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
func (m *Membership) difference(t Target, ready []uint64, mayRemove bool) *raftpb.ConfChangeV2 {
	cc := &raftpb.ConfChangeV2{}
	add := func(typ raftpb.ConfChangeType, id uint64) { cc.Changes = append(cc.Changes, confChange(typ, id)) }
	for _, id := range t.Voters {
		if !m.isVoter(id) && slices.Contains(ready, id) {
			add(raftpb.ConfChangeAddNode, id)
		}
	}
	for _, id := range t.Learners {
		if mayRemove && m.isVoter(id) {
			add(raftpb.ConfChangeAddLearnerNode, id)
		}
	}
	for _, id := range slices.Concat(m.conf.GetVoters(), m.conf.GetLearners()) {
		switch {
		case slices.Contains(t.Voters, id) || slices.Contains(t.Learners, id):
		case m.isVoter(id):
			if mayRemove {
				add(raftpb.ConfChangeAddLearnerNode, id)
			}
		case m.silentTicks[id] > patienceTicks:
			add(raftpb.ConfChangeRemoveNode, id)
		}
	}
	return cc
}

func (m *Membership) proposeConfChange(cc *raftpb.ConfChangeV2) error {
	m.changeTicks = 1
	if err := m.raft.ProposeConfChange(cc); err != nil && !errors.Is(err, raft.ErrProposalDropped) {
		return fmt.Errorf("consensus: propose a change of the membership: %w", err)
	}
	return nil
}

func (m *Membership) apply(e *raftpb.Entry) error {
	var cc raftpb.ConfChangeV2
	if err := proto.Unmarshal(e.GetData(), &cc); err != nil {
		return fmt.Errorf("consensus: entry %d: configuration change: %w", e.GetIndex(), err)
	}
	if id, nonce, ok := decodeAdmitted(cc.GetContext()); ok {
		m.admitted[id] = nonce
	}
	for _, change := range cc.GetChanges() {
		if id := change.GetNodeId(); !m.inConf(id) {
			m.addedAt[id] = e.GetIndex()
			delete(m.silentTicks, id)
		}
	}
	m.conf = m.raft.ApplyConfChange(&cc)
	m.changeTicks, m.idleTicks, m.checkDue = 0, 0, true
	return nil
}

// CheckpointKnows reports whether a checkpoint of that index knows the member. Raft installs no
// snapshot that does not know the member.
func (m *Membership) CheckpointKnows(index, id uint64) bool { return index >= m.addedAt[id] }

// AdmittedLife reports whether the member was let in for the life with this nonce.
func (m *Membership) AdmittedLife(id, nonce uint64) bool { return m.admitted[id] == nonce }

// Joining reports whether this member leads, and members without state ask to be let in.
func (m *Membership) Joining() bool { return m.role == raft.StateLeader && len(m.joinNonces) > 0 }

// noteJoin notes that a member asks to be let in, for the life with this nonce.
func (m *Membership) noteJoin(id, nonce uint64) { m.joinNonces[id], m.checkDue = nonce, true }

// Reconfiguring reports whether a change of the membership is under way here, or requested by a
// member without state.
func (m *Membership) Reconfiguring() bool { return len(m.joinNonces) > 0 || m.changeTicks > 0 }

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
