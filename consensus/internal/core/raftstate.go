package core

import (
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// raftState is raft, and where this member stands in raft. The Core and its parts share one. Three
// of them change where the member stands: the Core; Membership, which sets conf and connected; and
// Admission, which sets fresh, proof, minTerm and connected, and, when the member has formed a new
// ensemble, conf, applied and appliedTerm. The other parts read that, step raft and send messages.
type raftState struct {
	id      uint64
	raft    *raft.RawNode
	storage *raft.MemoryStorage
	logger  raft.Logger

	// As of the last raft.Ready.
	raftTerm uint64 // raft's own term
	leader   uint64 // as raft sees it; 0: none
	role     raft.StateType

	// As of the last entry that was handed out, or the installed checkpoint.
	applied     uint64 // its index
	appliedTerm uint64 // its term
	conf        *raftpb.ConfState

	fresh   bool   // this member has no state, so it takes no part in raft
	proof   string // why this member is outdated, so that it takes no part in raft; "": not known to be
	minTerm uint64 // messages of leaders of an earlier term are from before this member was let in

	inFlight  int                   // see RetentionLimits
	connected map[uint64]connection // absent: not connected
	outbox    []Message             // made outside of Ready, sent by the next Ready
	last      uint64                // handed to the log: no member can have acknowledged a later entry
	refused   uint64                // messages that no member sends
}

type connection uint8

const (
	connectionUp connection = 1
	// connectionFresh: the member has announced that it has no state, and is silent in raft since.
	connectionFresh connection = 2
)

func (m *raftState) startRaft() (err error) {
	m.raft, err = raft.NewRawNode(&raft.Config{
		ID:                        m.id,
		ElectionTick:              ElectionTicks,
		HeartbeatTick:             heartbeatTicks,
		Storage:                   raftStorage{m.storage, m},
		Applied:                   m.applied,
		AsyncStorageWrites:        true,
		MaxSizePerMsg:             maxBatchBytes,
		MaxInflightMsgs:           256,
		MaxInflightBytes:          uint64(m.inFlight),
		CheckQuorum:               true,
		PreVote:                   true,
		DisableProposalForwarding: true, // the streams forward, with numbers
		StepDownOnRemoval:         true,
		Logger:                    m.logger,
	})
	if err != nil {
		return fmt.Errorf("consensus: start raft: %w", err)
	}
	m.raftTerm = m.raft.BasicStatus().HardState.GetTerm()
	m.last, err = m.storage.LastIndex()
	return err
}

// raftStorage is raft's view of the log in memory, with checkpoints of the state machine as its
// snapshots. If a member needs a snapshot, any state that is at least as new may be sent.
type raftStorage struct {
	*raft.MemoryStorage
	m *raftState
}

// InitialState gives raft the membership as of the restored state; the log may begin earlier.
func (s raftStorage) InitialState() (*raftpb.HardState, *raftpb.ConfState, error) {
	hard, _, err := s.MemoryStorage.InitialState()
	return hard, s.m.conf, err
}

func (s raftStorage) Snapshot() (*raftpb.Snapshot, error) {
	return Snapshot(s.m.applied, s.m.appliedTerm, s.m.conf), nil
}

// Snapshot returns raft's description of a state.
func Snapshot(index, term uint64, conf *raftpb.ConfState) *raftpb.Snapshot {
	return &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{ConfState: conf, Index: &index, Term: &term}}
}

func (m *raftState) ID() uint64 { return m.id }

// Leader returns the leader as raft sees it; 0: none.
func (m *raftState) Leader() uint64 { return m.leader }

func (m *raftState) Leads() bool { return m.role == raft.StateLeader }

func (m *raftState) RaftTerm() uint64 { return m.raftTerm }

// Applied returns the index of the last entry that was handed out.
func (m *raftState) Applied() uint64 { return m.applied }

// AppliedTerm returns the term of the last entry that was handed out.
func (m *raftState) AppliedTerm() uint64 { return m.appliedTerm }

// Conf returns raft's membership. A change replaces the result, and never modifies it.
func (m *raftState) Conf() *raftpb.ConfState { return m.conf }

// Fresh reports whether this member has no state.
func (m *raftState) Fresh() bool { return m.fresh }

// Admitted reports whether this member came without state, and a leader let it in.
func (m *raftState) Admitted() bool { return m.minTerm != 0 }

func (m *raftState) Voter() bool { return m.isVoter(m.id) }

// Current reports whether a leader is known and its first entry is applied.
func (m *raftState) Current() bool { return m.leader != raft.None && m.appliedTerm == m.raftTerm }

// FirstIndex returns the index of the first entry in memory.
func (m *raftState) FirstIndex() (uint64, error) { return m.storage.FirstIndex() }

// Outdated returns the proof that this member's directory is older than what the member has
// acknowledged, or "".
func (m *raftState) Outdated() string { return m.proof }

func (m *raftState) takesPart() bool { return !m.fresh && m.proof == "" }

func (m *raftState) isVoter(id uint64) bool { return slices.Contains(m.conf.GetVoters(), id) }

func (m *raftState) isLearner(id uint64) bool { return slices.Contains(m.conf.GetLearners(), id) }

func (m *raftState) inConf(id uint64) bool {
	return m.isVoter(id) || m.isLearner(id) || slices.Contains(m.conf.GetVotersOutgoing(), id)
}

// send sends a message with the next Ready.
func (m *raftState) send(msg Message) {
	msg.From = m.id
	m.outbox = append(m.outbox, msg)
}

func (m *raftState) feed(r *raftpb.Message) error {
	if m.proof != "" {
		return nil
	}
	if err := m.raft.Step(r); err != nil && !errors.Is(err, raft.ErrStepPeerNotFound) {
		return fmt.Errorf("consensus: raft: %w", err)
	}
	return nil
}

// Follow appends entries that an ensemble has committed, and commits them: at a member without a
// part in the ensemble, which has no leader and gets none. Everything committed before must be
// applied. Entries that were applied are left out. If the first of the others does not follow,
// Follow does nothing.
func (m *raftState) Follow(entries []*raftpb.Entry) error {
	for len(entries) > 0 && entries[0].GetIndex() <= m.applied {
		entries = entries[1:]
	}
	if len(entries) == 0 || entries[0].GetIndex() != m.applied+1 {
		return nil
	}
	last := entries[len(entries)-1]
	return m.feed(&raftpb.Message{
		Type: raftpb.MsgApp.Enum(), To: &m.id, From: new(raft.None), Term: new(max(m.raftTerm, last.GetTerm())),
		Index: new(m.applied), LogTerm: new(m.appliedTerm), Entries: entries, Commit: new(last.GetIndex()),
	})
}

// noteAppend notes the entries handed to the log, before they are sent to other members.
func (m *raftState) noteAppend(a *raftpb.Message) {
	if n := len(a.GetEntries()); n > 0 {
		m.last = a.GetEntries()[n-1].GetIndex()
	} else if s := a.GetSnapshot(); s != nil {
		m.last = s.GetMetadata().GetIndex()
	}
}

func (m *raftState) refuse(r *raftpb.Message, reason string) {
	if m.refused++; m.refused&(m.refused-1) == 0 { // a broken member must not fill the disk with log lines
		m.logger.Errorf("%v of member %d refused (refused so far: %d): %s",
			r.GetType(), number(r.GetFrom()), m.refused, reason)
	}
}

// Refused counts the messages of other members that make no sense.
func (m *raftState) Refused() uint64 { return m.refused }

type commitNotice struct{ index, term uint64 }

// sendCommitNotice tells members how far the log is committed, if this member is no voter: a
// candidate, which may not know that yet, or all, which learn that this member has a state.
//
// Otherwise the candidate may need this vote and never get it. Suppose that the candidate led, sent
// entries that this member has, and lost the end of its own log in a crash, together with the
// knowledge that the change is committed, which reaches the disk late. Then this member's log is
// longer.
func (m *raftState) sendCommitNotice(to ...uint64) {
	for _, id := range to {
		if !m.Voter() {
			m.send(Message{To: id, commit: &commitNotice{m.applied, m.appliedTerm}})
		}
	}
}

// handleCommitNotice takes over the commit index. Raft accepts the index as a snapshot of an entry
// that is in the log.
func (m *raftState) handleCommitNotice(from uint64, s *commitNotice) error {
	term, err := m.storage.Term(s.index)
	if err != nil || term != s.term || s.index <= m.applied ||
		m.leader != raft.None || !m.takesPart() || !m.inConf(m.id) {
		return nil
	}
	err = m.feed(&raftpb.Message{
		Type: raftpb.MsgSnap.Enum(), To: &m.id, From: &from, Term: &m.raftTerm,
		Snapshot: Snapshot(s.index, s.term, m.conf),
	})
	// Raft now takes the sender for the leader. An error would say that raft refuses to forget it,
	// which depends on an option that is not set.
	_ = m.raft.ForgetLeader()
	return err
}
