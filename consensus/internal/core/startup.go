package core

import (
	"errors"
	"maps"
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// joinTicks is the interval, in ticks, at which a member without state announces itself to the
// others.
const joinTicks = 2

// startup holds the state of a member until it takes part in raft.
//
// A member without state is called fresh. A fresh member takes no part in raft, because it may have
// voted and acknowledged in an earlier life, with a data directory that is lost. It may
//
//   - form a new ensemble together with other fresh members: if all the configured voters agree, or
//     a majority after some time, and no member has state;
//   - be let in by a leader, after a quorum without it has agreed that its earlier promises don't
//     count (membership.readmit).
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
//     everything that follows from its vote. If t > T, the quorums of X's election and of the
//     removal share another member. Had that member voted for X first, it would not have
//     acknowledged the removal in the lower term. So it acknowledged first, X's log is at least as
//     new and contains the removal, and raft lets nobody campaign with an unapplied configuration
//     change: X did not count m.
//   - A vote lost during founding does no harm. If all other voters are fresh or young, every
//     candidate that m may have voted for is among them, and m votes in none of the terms that they
//     know. With only a majority, the young members founded while this life of m was there without
//     data.
//   - An old "admitted" admits nobody, because of the nonce. A late "I am fresh" of a member with
//     state costs it its vote for a moment, and only if the leader has not heard it in raft for a
//     while and hears a quorum without it.
type startup struct {
	fresh            bool
	voters, learners []uint64 // to form an ensemble with; none: wait to be let in
	nonce            uint64
	minTerm          uint64          // messages of leaders of an earlier term are from before this member was let in
	holders          map[uint64]bool // members with state that answered; then there is an ensemble
	forming          bool            // Output.Form was returned
	past             pastLife
	incarnations     uint64            // counts changes of an incarnation in Core.streams
	founders         map[uint64]bool   // members that would form the same ensemble; true: they are fresh, or they know this life
	nonces           map[uint64]uint64 // by member: shown while this member was fresh
	foundersTerm     uint64            // the highest term that members of the formed ensemble know of
	ticks            int
	graceTicks       int

	connected map[uint64]connection // absent: not connected

	peers         []uint64
	campaigned    bool // an early campaign was scheduled since a leader was last known
	leaderSilence int  // ticks since the leader was heard from
	passiveSince  bool // this member was passive since the leader was heard from, so raft's clock stood still
	campaignIn    int  // ticks until this member campaigns; 0: when raft says so
}

type connection uint8

const (
	connectionUp connection = 1
	// connectionFresh: the member has announced that it has no state, and not been heard in raft
	// since.
	connectionFresh connection = 2
)

// joinRequest announces a fresh member.
type joinRequest struct {
	nonce    uint64
	founders uint64 // the hash of the voters with which it would form an ensemble; 0: the member is outdated
}

// joinAnswer is the reply to a joinRequest.
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
func (c *Core) SetPeers(ids []uint64) { c.start.peers = slices.Sorted(slices.Values(ids)) }

func (c *Core) tickStart() {
	s := &c.start
	if s.campaignIn > 0 {
		if s.campaignIn--; s.campaignIn == 0 && c.leader == raft.None && !c.passive() {
			// An error would say that this member is no voter.
			_ = c.raft.Campaign()
		}
	}
	if !s.fresh && !s.past.durable {
		return
	}
	if s.ticks++; s.ticks%joinTicks == 1 {
		c.sendJoin(s.peers...)
	}
}

// sendJoin announces to members that this member has no state, or is outdated.
func (c *Core) sendJoin(to ...uint64) {
	founders := uint64(0)
	if c.start.fresh {
		founders = hashFounders(c.start.voters)
	}
	for _, id := range to {
		c.wire.outbox = append(c.wire.outbox, Message{To: id, From: c.id, join: &joinRequest{c.start.nonce, founders}})
	}
}

// tickLeaderSilence makes a member that does not campaign doubt a silent leader. Raft lets only
// voters do so, when they campaign: a learner, and its clients with it, would follow a dead leader
// until the next election. A voter whose log hung would still believe in that leader when its log
// goes on, and refuse its vote, because raft's clock stood still meanwhile.
func (c *Core) tickLeaderSilence() {
	s := &c.start
	s.leaderSilence++
	s.passiveSince = s.passiveSince || c.passive()
	patience := 2 * electionTicks
	switch {
	case s.fresh || c.leader == raft.None || c.Voter() && !s.passiveSince:
		return
	case c.Voter():
		patience = electionTicks // the lease of the leader
	}
	if s.leaderSilence > patience {
		// An error would say that raft refuses, which depends on an option that is not set.
		_ = c.raft.ForgetLeader()
		s.leaderSilence = 0
	}
}

// handleJoin notes that a member has no state, and answers the request.
func (c *Core) handleJoin(from uint64, j *joinRequest) {
	s := &c.start
	if j.founders != 0 && s.connected[from] != 0 {
		s.connected[from] = connectionFresh
	}
	answer := &joinAnswer{nonce: j.nonce, state: joinEnsembleExists}
	last, err := c.storage.LastIndex()
	switch {
	case s.fresh:
		if s.nonces == nil {
			s.nonces = make(map[uint64]uint64)
		}
		s.nonces[from] = j.nonce
		if s.noteFounder(from, j.founders, true) {
			c.sendJoin(from)
		}
		return
	case c.role == raft.StateLeader && c.inConf(from) && c.membership.admitted[from] == j.nonce:
		answer.state, answer.term = joinAdmitted, c.raftTerm
	case c.role == raft.StateLeader:
		c.membership.joinNonces[from], c.membership.checkDue = j.nonce, true
	case err == nil && last == 1:
		answer.state, answer.founders, answer.term = joinFormed, hashFounders(c.conf.GetVoters()), c.raftTerm
		if nonce, ok := s.nonces[from]; ok && nonce == j.nonce {
			answer.state = joinFormedKnowing
		}
	}
	c.wire.outbox = append(c.wire.outbox, Message{To: from, From: c.id, answer: answer})
}

// handleJoinAnswer takes the answer to this member's joinRequest.
func (c *Core) handleJoinAnswer(from uint64, a *joinAnswer) error {
	s := &c.start
	if a.nonce != s.nonce {
		return nil
	}
	if s.past.durable && a.state == joinAdmitted {
		return c.letIn(a.term)
	}
	if !s.fresh {
		return nil
	}
	switch a.state {
	case joinFormed, joinFormedKnowing:
		s.noteFounder(from, a.founders, a.state == joinFormedKnowing)
		s.foundersTerm = max(s.foundersTerm, a.term)
	case joinEnsembleExists:
		if s.holders == nil {
			s.holders = make(map[uint64]bool)
		}
		s.holders[from] = true
	case joinAdmitted:
		if !s.forming {
			s.fresh, s.minTerm = false, a.term
		}
	}
	return nil
}

// heard notes a message of raft.
func (s *startup) heard(from uint64, leads bool) {
	if leads {
		s.leaderSilence, s.passiveSince = 0, false
	}
	if s.connected[from] == connectionFresh {
		s.connected[from] = connectionUp
	}
}

// Inventory returns the connected members and this one that have no data, and those that are known
// to have data, in any order. A founder of an ensemble without an entry knows of neither.
func Inventory(c *Core) (without, with []uint64) {
	last, err := c.storage.LastIndex()
	switch {
	case c.start.fresh:
		without = append(without, c.id)
	case err != nil || last == 1:
		return nil, nil
	default:
		with = append(with, c.id)
	}
	for id, connection := range c.start.connected {
		if connection == connectionFresh {
			without = append(without, id)
		}
	}
	return without, slices.AppendSeq(with, maps.Keys(c.start.holders))
}

// noteFounder notes that a member would form the same ensemble, and reports whether that is news.
func (s *startup) noteFounder(from, founders uint64, knowsThisLife bool) (news bool) {
	if founders != hashFounders(s.voters) {
		return false
	}
	if s.founders == nil {
		s.founders = make(map[uint64]bool)
	}
	_, known := s.founders[from]
	s.founders[from] = knowsThisLife
	return !known
}

// form decides whether to form a new ensemble.
//
// This member may have been part of that ensemble in an earlier life. If all other members are
// fresh, or have formed it and not heard of a leader, nothing was committed yet, and no vote of the
// earlier life counts in a term that none of them knows. A majority proves the same only if those
// of its members that have formed the ensemble know this life: then this member was there, without
// state, when they formed.
func (c *Core) form(out *Output) {
	s := &c.start
	if !s.fresh || len(s.holders) > 0 || s.forming || !slices.Contains(s.voters, c.id) {
		return
	}
	all, knowing := 1, 1
	for _, id := range s.voters {
		if knows, ok := s.founders[id]; ok && id != c.id {
			all++
			if knows {
				knowing++
			}
		}
	}
	if all == len(s.voters) || knowing > len(s.voters)/2 && s.ticks >= s.graceTicks {
		s.forming, out.Form = true, true
		c.sendJoin(s.peers...) // a member that has not received the announcement yet would come too late
	}
}

// MissingFounders returns the voters of the new ensemble which were not heard of when this member
// formed it. One of them may have the data of an earlier ensemble.
func (c *Core) MissingFounders() (ids []uint64) {
	for _, id := range c.start.voters {
		if _, heard := c.start.founders[id]; !heard && id != c.id {
			ids = append(ids, id)
		}
	}
	return ids
}

// FirstMeta returns the meta of a new ensemble's first state. Index 1 and term 1 stand for no
// entry.
func (c *Core) FirstMeta() Meta {
	m := c.Meta()
	m.Index, m.Term = 1, 1
	m.Conf = &raftpb.ConfState{Voters: c.start.voters, Learners: c.start.learners}
	return m
}

// FirstState returns the first log state of a new ensemble, without the incarnation. In a term that
// other founders know already, this member may have voted in an earlier life. There it begins with
// a vote for itself, so that it votes for no other member.
func (c *Core) FirstState() LogState {
	s := LogState{Term: 1, Commit: 1}
	if c.start.foundersTerm > 1 {
		s.Term, s.Vote = c.start.foundersTerm, c.id
	}
	return s
}

// Formed makes this member part of a new ensemble. Call it when FirstState and FirstMeta are
// durable.
func (c *Core) Formed() error {
	m := c.FirstMeta()
	c.conf, c.applied, c.appliedTerm = m.Conf, m.Index, m.Term
	hard := c.FirstState().HardState()
	if err := errors.Join(c.storage.ApplySnapshot(Snapshot(m.Index, m.Term, m.Conf)), c.storage.SetHardState(hard)); err != nil {
		return err
	}
	c.start.fresh = false
	if err := c.newRaft(); err != nil {
		return err
	}
	if len(m.Conf.GetVoters()) == 1 {
		return c.raft.Campaign()
	}
	c.campaignEarly()
	return nil
}

// Reachable notes a connection to a member. If the connection is new, messages on the previous
// connection may be lost.
func (c *Core) Reachable(peer uint64) {
	if c.start.connected == nil {
		c.start.connected = make(map[uint64]connection)
	}
	c.start.connected[peer] = connectionUp
	c.stall.probes.forget(peer)
	if peer == c.leader && c.role != raft.StateLeader {
		c.own.resend()
		c.retryReadRound()
	}
	c.campaignEarly()
}

// Unreachable notes that the connection to a member is lost. gone says that its port refuses
// connections, so that the member is not merely slow: an election for a leader that is gone begins
// before the timeout.
func (c *Core) Unreachable(peer uint64, gone bool) {
	delete(c.start.connected, peer)
	delete(c.levels.peers, peer)
	c.wire.relays.endFeed(peer)
	if c.wire.relays.source.id == peer {
		c.wire.relays.source.giveUp()
	}
	c.stall.probes.forget(peer)
	c.raft.ReportUnreachable(peer)
	if gone && peer == c.leader && c.role == raft.StateFollower {
		// An error would say that this member can't; then the election timeout decides.
		_ = c.raft.ForgetLeader()
		c.start.campaigned = false
		c.scheduleCampaign()
	}
}

// campaignEarly begins an election if there is no leader and a quorum can be reached. At the start
// that saves the election timeout.
func (c *Core) campaignEarly() {
	if c.leader == raft.None && c.role == raft.StateFollower {
		c.scheduleCampaign()
	}
}

// scheduleCampaign lets the reachable voter with the lowest id campaign at once and the others a
// little later, in turn. If all campaigned at the same time, their votes would split. Whether the
// others vote for this member is up to raft.
func (c *Core) scheduleCampaign() {
	s := &c.start
	if !c.takesPart() || s.campaigned || !c.Voter() {
		return
	}
	n, rank := 1, 0
	for _, id := range c.conf.GetVoters() {
		if id != c.id && s.connected[id] != 0 {
			n++
			if id < c.id {
				rank++
			}
		}
	}
	if n > len(c.conf.GetVoters())/2 {
		s.campaigned, s.campaignIn = true, 1+3*rank
	}
}
