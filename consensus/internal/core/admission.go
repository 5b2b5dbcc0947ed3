package core

import (
	"errors"
	"maps"
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// How often, in ticks, a member asks to be let in, or says that it has a state: see Admission.tick.
const joinTicks, stateTicks = 2, 2 * ElectionTicks

// Admission decides alone whether this member takes part in raft, and holds its state until it
// does. Admission also answers for this member when other members ask to be let in.
//
// A member without state is called fresh. A fresh member takes no part in raft, because it may have
// voted and acknowledged in an earlier life, with a data directory that is lost. It may
//
//   - form a new ensemble together with other fresh members: if all the configured voters agree, or
//     a majority after some time, and no member has state;
//   - be let in by a leader, after a quorum without it has agreed that its earlier promises don't
//     count (Membership.readmit).
//
// The nonce of its life tells the two apart. See docs/adr/0002-members-without-state.md.
//
// A member that has formed an ensemble but has no entry in its log yet, called young, still counts
// as fresh. The asking member may have voted for it and lost its directory. So a young member
// reports its term, and whether it knew this life of the asker when it formed the ensemble; a
// majority counts only members that did. A member that forms the ensemble late treats its vote in
// the highest of these terms as given to itself.
//
// Why admission is safe: let m be the member, and C the configuration in which m votes.
//
//   - An entry committed with m's lost acknowledgement stays. The quorum of C without m that
//     commits the removal shares a member with the quorum that committed the entry. So the leader
//     that committed the removal has the entry, or can commit nothing more.
//   - A lost vote of m does no harm. Suppose m voted for X in term t, and a leader of term T
//     committed the removal of m. If t <= T, the term in "admitted" (minTerm) makes m ignore
//     everything that follows from its vote, and vote for no other member in term t. If t > T, the
//     quorums of X's election and of the removal share another member. Had that member voted for X
//     first, it would not have acknowledged the removal in the lower term. So it acknowledged
//     first, X's log is at least as new and contains the removal, and raft lets nobody campaign
//     with an unapplied configuration change: X did not count m.
//   - A vote lost during founding does no harm. If all other voters are fresh or young, every
//     candidate that m may have voted for is among them, and m votes in none of the terms that they
//     know. With only a majority, the young members founded while this life of m was there without
//     data.
//   - An old "admitted" admits nobody, because of the nonce. A late "I am fresh" of a member with
//     state costs it its vote for a moment, and only if the leader has not heard it in raft for a
//     while and hears a quorum without it.
type Admission struct {
	*raftState
	membership *Membership
	standAside func() // ends this member's part in raft: it has become outdated

	voters, learners []uint64 // to form an ensemble with; none: wait to be let in
	nonce            uint64
	peers            []uint64        // the other members
	holders          map[uint64]bool // members with state that answered; then there is an ensemble
	forming          bool            // Output.Form was returned
	past             pastLife
	founders         map[uint64]bool   // members that would form the same ensemble; true: they count for a majority
	nonces           map[uint64]uint64 // by member: shown while this member was fresh
	foundersTerm     uint64            // the highest term that members of the formed ensemble know of
	ticks            int
	graceTicks       int // negative: all members must announce that they have no data
}

func newAdmission(m *raftState, membership *Membership, standAside func(), cfg *Config) *Admission {
	s := &Admission{
		raftState: m, membership: membership, standAside: standAside, nonce: cfg.Nonce,
		holders: make(map[uint64]bool), founders: make(map[uint64]bool), nonces: make(map[uint64]uint64),
	}
	if m.fresh {
		s.voters, s.learners, s.graceTicks = cfg.Voters, cfg.Learners, cfg.GraceTicks
	} else {
		s.past.incarnation = cfg.Past
	}
	return s
}

type joinRequest struct {
	nonce uint64
	// founders is the hash of the voters with which it would form an ensemble, or its complement if
	// a majority is not enough for that; 0: the member is outdated.
	founders uint64
}

type joinAnswer struct {
	nonce    uint64 // of the request
	state    joinState
	founders uint64 // joinFormed: the ensemble that the sender formed
	term     uint64 // joinFormed: the sender's; joinAdmitted: of the leader that let the member in
}

type joinState uint8

const (
	joinEnsembleExists joinState = 1 // there is an ensemble with state
	joinFormed         joinState = 2 // the sender formed a new ensemble and has not heard of a leader in it
	joinAdmitted       joinState = 3 // the sender, a leader, let this life of the member in
	joinFormedKnowing  joinState = 4 // joinFormed, and the sender knew this life of the member when it formed
)

// hashFounders identifies the ensemble of these voters.
func hashFounders(voters []uint64) uint64 {
	h := uint64(14695981039346656037) // FNV-1a
	for _, id := range slices.Sorted(slices.Values(voters)) {
		h = (h ^ id) * 1099511628211
	}
	return h
}

// SetPeers says which other members there are.
func (s *Admission) SetPeers(ids []uint64) { s.peers = slices.Sorted(slices.Values(ids)) }

// tick announces this member to the others while it waits to be let in, and then for its first
// checkpoint: the leader may have removed it again, because it was silent. Later, with neither a
// vote nor a leader, the member says that it has a state: the next leader may not know.
func (s *Admission) tick() {
	asks := s.fresh || s.past.durable || s.applied == 0
	if !asks && (s.proof != "" || s.leader != raft.None) {
		return
	}
	switch s.ticks++; {
	case asks && s.ticks%joinTicks == 1:
		s.sendJoin(s.peers...)
	case !asks && s.ticks%stateTicks == 0:
		s.sendCommitNotice(s.peers...)
	}
}

// sendJoin announces to members that this member has no state, or is outdated.
func (s *Admission) sendJoin(to ...uint64) {
	founders := uint64(0)
	switch {
	case s.past.durable:
	case s.fresh && s.graceTicks < 0:
		founders = ^hashFounders(s.voters)
	case s.fresh:
		founders = hashFounders(s.voters)
	default: // it was let in, and forms no ensemble
		founders = hashFounders(nil)
	}
	for _, id := range to {
		s.send(Message{To: id, join: &joinRequest{s.nonce, founders}})
	}
}

// handleJoin notes that a member has no state, and answers the request.
func (s *Admission) handleJoin(from uint64, j *joinRequest) {
	if j.founders != 0 && s.connected[from] != 0 {
		s.connected[from] = connectionFresh
	}
	answer := &joinAnswer{nonce: j.nonce, state: joinEnsembleExists}
	last, err := s.storage.LastIndex()
	switch {
	case s.fresh:
		s.nonces[from] = j.nonce
		if s.noteFounder(from, j.founders, true) {
			s.sendJoin(from)
		}
		return
	case s.role == raft.StateLeader && s.inConf(from) && s.membership.AdmittedLife(from, j.nonce):
		answer.state, answer.term = joinAdmitted, s.raftTerm
	case s.role == raft.StateLeader:
		s.membership.noteJoin(from, j.nonce)
	case err == nil && last == 1:
		answer.state, answer.founders, answer.term = joinFormed, hashFounders(s.conf.GetVoters()), s.raftTerm
		if nonce, ok := s.nonces[from]; ok && nonce == j.nonce {
			answer.state = joinFormedKnowing
		}
	}
	s.send(Message{To: from, answer: answer})
}

func (s *Admission) handleAnswer(from uint64, a *joinAnswer) error {
	if a.nonce != s.nonce {
		return nil
	}
	if s.past.durable && a.state == joinAdmitted {
		return s.letIn(a.term)
	}
	if !s.fresh {
		return nil
	}
	switch a.state {
	case joinFormed, joinFormedKnowing:
		s.noteFounder(from, a.founders, a.state == joinFormedKnowing)
		s.foundersTerm = max(s.foundersTerm, a.term)
	case joinEnsembleExists:
		s.holders[from] = true
	case joinAdmitted:
		if !s.forming {
			s.fresh, s.minTerm = false, a.term
		}
	}
	return nil
}

// Inventory returns the connected members and this one that have no data, and those that are known
// to have data, in any order. A founder of an ensemble without an entry knows of neither.
func (s *Admission) Inventory() (without, with []uint64) {
	last, err := s.storage.LastIndex()
	switch {
	case s.fresh:
		without = append(without, s.id)
	case err != nil || last == 1:
		return nil, nil
	default:
		with = append(with, s.id)
	}
	for id, connection := range s.connected {
		if connection == connectionFresh {
			without = append(without, id)
		}
	}
	return without, slices.AppendSeq(with, maps.Keys(s.holders))
}

// tooEarly reports whether a message of raft is from before this member was let in. In the term in
// which it was let in, it may have voted.
func (s *Admission) tooEarly(r *raftpb.Message) bool {
	return r.GetTerm() != 0 && r.GetTerm() < s.minTerm || r.GetType() == raftpb.MsgVote && r.GetTerm() <= s.minTerm
}

// noteFounder notes that a member would form the same ensemble, and reports whether that is news.
// knowing: it is fresh, or knows this life.
func (s *Admission) noteFounder(from, founders uint64, knowing bool) (news bool) {
	same := hashFounders(s.voters)
	if founders != same && founders != ^same {
		return false
	}
	_, known := s.founders[from]
	s.founders[from] = knowing && founders == same
	return !known
}

// form decides whether to form a new ensemble.
//
// This member may have been part of that ensemble in an earlier life. If all other members are
// fresh, or have formed it and not heard of a leader, nothing was committed yet, and no vote of the
// earlier life counts in a term that none of them knows. A majority proves the same only if those
// of its members that have formed the ensemble know this life: then this member was there, without
// state, when they formed.
//
// A member that knows that its directory was emptied waits for all other members, and counts for no
// majority: one that was not heard may have the data.
func (s *Admission) form(out *Output) {
	if !s.fresh || len(s.holders) > 0 || s.forming || !slices.Contains(s.voters, s.id) {
		return
	}
	all, knowing := 1, 1
	for _, id := range s.voters {
		if knows, ok := s.founders[id]; ok && id != s.id {
			all++
			if knows {
				knowing++
			}
		}
	}
	enough := all == len(s.voters)
	if s.graceTicks < 0 {
		silent := func(id uint64) bool { _, heard := s.founders[id]; return !heard }
		enough = enough && !slices.ContainsFunc(slices.Concat(s.learners, s.peers), silent)
	} else if s.ticks >= s.graceTicks {
		enough = enough || knowing > len(s.voters)/2
	}
	if enough {
		s.forming, out.Form = true, true
		s.sendJoin(s.peers...) // a member that has not received the announcement yet would come too late
	}
}

// MissingFounders returns the voters of the new ensemble which were not heard of when this member
// formed it. One of them may have the data of an earlier ensemble.
func (s *Admission) MissingFounders() (ids []uint64) {
	for _, id := range s.voters {
		if _, heard := s.founders[id]; !heard && id != s.id {
			ids = append(ids, id)
		}
	}
	return ids
}

// FirstState returns the first log state of a new ensemble, without the incarnation. In a term that
// other founders know already, this member may have voted in an earlier life. There it begins with
// a vote for itself, so that it votes for no other member.
func (s *Admission) FirstState() LogState {
	first := LogState{Term: 1, Commit: 1}
	if s.foundersTerm > 1 {
		first.Term, first.Vote = s.foundersTerm, s.id
	}
	return first
}

// formed makes this member part of a new ensemble with this first state.
func (s *Admission) formed(m Meta) error {
	s.conf, s.applied, s.appliedTerm = m.Conf, m.Index, m.Term
	hard := s.FirstState().HardState()
	err := errors.Join(s.storage.ApplySnapshot(Snapshot(m.Index, m.Term, m.Conf)), s.storage.SetHardState(hard))
	if err != nil {
		return err
	}
	s.fresh = false
	return s.startRaft()
}
