package consensus

import (
	"errors"
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// joinTicks is how often a member without state tells the others of itself.
const joinTicks = 2

// startup is how a member comes to take part.
//
// A member without state, a fresh one, takes no part in raft: it may have voted and acknowledged in an earlier life, with a
// data directory that is gone. It may
//
//   - form a new ensemble, together with others that have no state either: when all the voters that it was configured with
//     say so, or a majority after some time, and nobody has state;
//   - be let in by a leader, after a quorum without it has agreed that its earlier promises don't count (membership.readmit).
//
// Which one it was is told apart by the nonce of its life. See docs/adr/0002-members-without-state.md.
type startup struct {
	fresh            bool
	voters, learners []uint64 // to form with; none: wait to be let in
	nonce            uint64
	minTerm          uint64            // what comes from a leader of an earlier term is from before this member was let in
	settled          bool              // somebody has state, so there is an ensemble
	forming          bool              // form was asked for
	willing          map[uint64]bool   // those who would form the same ensemble; true: without state, or they know this life of ours
	lives            map[uint64]uint64 // nonces that others showed while this member was fresh
	formTerm         uint64            // the highest that those who have formed it know of
	ticks            int
	graceTicks       int

	peers      []uint64
	up         map[uint64]bool // whom we are connected with
	hurried    bool
	quiet      int // ticks since the leader was heard from
	campaignIn int // ticks until this member campaigns; 0: when raft says so
}

// joinRequest is what a fresh member tells the others.
type joinRequest struct {
	nonce uint64
	form  uint64 // the ensemble that it would form
}

// joinAnswer is what they say.
type joinAnswer struct {
	nonce uint64 // as asked
	state joinState
	form  uint64 // young: the ensemble that it formed
	term  uint64 // young: which it knows of; admitted: of the leader that let it in
}

type joinState uint8

const (
	stateSettled  joinState = 1 // there is an ensemble with state
	stateYoung    joinState = 2 // formed a new ensemble, and has not heard of a leader of it yet
	stateAdmitted joinState = 3 // this life of the asker was let in
	stateYoungToo joinState = 4 // young, and formed when it knew of this life of the asker
)

// formOf names the ensemble of these members.
func formOf(voters []uint64) uint64 {
	h := uint64(14695981039346656037) // FNV-1a
	for _, id := range slices.Sorted(slices.Values(voters)) {
		h = (h ^ id) * 1099511628211
	}
	return h
}

// setPeers says who else there is.
func (c *core) setPeers(ids []uint64) { c.start.peers = slices.Sorted(slices.Values(ids)) }

func (c *core) tickStart() {
	s := &c.start
	if s.campaignIn > 0 {
		if s.campaignIn--; s.campaignIn == 0 && c.leader == raft.None {
			// An error would say that this member is no voter.
			_ = c.node.Campaign()
		}
	}
	if !s.fresh {
		return
	}
	if s.ticks++; s.ticks%joinTicks == 1 {
		c.sayJoin(s.peers...)
	}
}

// sayJoin tells members that this one has no state.
func (c *core) sayJoin(to ...uint64) {
	for _, id := range to {
		c.outbox = append(c.outbox, message{to: id, from: c.id, join: &joinRequest{c.start.nonce, formOf(c.start.voters)}})
	}
}

// tickLearner makes a learner doubt a leader that is silent. Raft lets only voters do so: a learner would follow one that is gone
// until the next one is elected, and its clients with it.
func (c *core) tickLearner() {
	c.start.quiet++
	if c.start.quiet > 2*electionTicks && c.leader != raft.None && !c.start.fresh && !slices.Contains(c.conf.GetVoters(), c.id) {
		// An error would say that raft is closed to this, which depends on an option that is not set.
		_ = c.node.ForgetLeader()
		c.start.quiet = 0
	}
}

// joinAsked hears that a member has no state.
func (c *core) joinAsked(from uint64, j *joinRequest) {
	s := &c.start
	answer := &joinAnswer{nonce: j.nonce, state: stateSettled}
	last, err := c.storage.LastIndex()
	switch {
	case s.fresh:
		if s.lives == nil {
			s.lives = make(map[uint64]uint64)
		}
		s.lives[from] = j.nonce
		if s.note(from, j.form, true) {
			c.sayJoin(from)
		}
		return
	case c.role == raft.StateLeader && c.inConf(from) && c.member.admitted[from] == j.nonce:
		answer.state, answer.term = stateAdmitted, c.raftTerm
	case c.role == raft.StateLeader:
		c.member.joins[from], c.member.look = j.nonce, true
	case err == nil && last == 1:
		answer.state, answer.form, answer.term = stateYoung, formOf(c.conf.GetVoters()), c.raftTerm
		if nonce, ok := s.lives[from]; ok && nonce == j.nonce {
			answer.state = stateYoungToo
		}
	}
	c.outbox = append(c.outbox, message{to: from, from: c.id, answer: answer})
}

// joinAnswered hears what another member says to that.
func (c *core) joinAnswered(from uint64, a *joinAnswer) {
	s := &c.start
	if !s.fresh || a.nonce != s.nonce {
		return
	}
	switch a.state {
	case stateYoung, stateYoungToo:
		s.note(from, a.form, a.state == stateYoungToo)
		s.formTerm = max(s.formTerm, a.term)
	case stateSettled:
		s.settled = true
	case stateAdmitted:
		if !s.forming {
			s.fresh, s.minTerm = false, a.term
		}
	}
}

// note takes down who would form the same ensemble, and reports whether that is news.
func (s *startup) note(from, form uint64, sure bool) (news bool) {
	if form != formOf(s.voters) {
		return false
	}
	if s.willing == nil {
		s.willing = make(map[uint64]bool)
	}
	_, known := s.willing[from]
	s.willing[from] = sure
	return !known
}

// form decides whether a new ensemble is formed.
//
// This member may have been one of it in an earlier life. If all others are fresh or young, nothing was committed yet, and no vote of that
// life counts in a term that none of them knows. A majority shows that only if those in it that are young know this life: then it
// was there, without state, when they formed the ensemble.
func (c *core) form(out *output) {
	s := &c.start
	if !s.fresh || s.settled || s.forming || !slices.Contains(s.voters, c.id) {
		return
	}
	all, sure := 1, 1
	for _, id := range s.voters {
		if known, ok := s.willing[id]; ok && id != c.id {
			all++
			if known {
				sure++
			}
		}
	}
	if all == len(s.voters) || sure > len(s.voters)/2 && s.ticks >= s.graceTicks {
		s.forming, out.form = true, true
		c.sayJoin(s.peers...) // who has not heard it yet would come too late
	}
}

// firstMeta is what the state of a new ensemble begins with: index 1 and term 1 stand for no entry.
func (c *core) firstMeta() checkpointMeta {
	m := c.meta()
	m.Index, m.Term = 1, 1
	m.Conf = &raftpb.ConfState{Voters: c.start.voters, Learners: c.start.learners}
	return m
}

// firstState is what the log of a new ensemble begins with, without the incarnation. In the terms that others know already this member
// may have voted, so it does not.
func (c *core) firstState() logState {
	s := logState{Term: 1, Commit: 1}
	if c.start.formTerm > 1 {
		s.Term, s.Vote = c.start.formTerm, c.id
	}
	return s
}

// formed makes this member one of a new ensemble. What firstMeta and firstState say is on disk.
func (c *core) formed() error {
	m := c.firstMeta()
	c.conf, c.applied, c.term = m.Conf, m.Index, m.Term
	hard := c.firstState().hardState()
	if err := errors.Join(c.storage.ApplySnapshot(snapshotOf(m.Index, m.Term, m.Conf)), c.storage.SetHardState(hard)); err != nil {
		return err
	}
	c.start.fresh = false
	if err := c.newRaft(); err != nil {
		return err
	}
	if len(m.Conf.GetVoters()) == 1 {
		return c.node.Campaign()
	}
	c.hurry()
	return nil
}

// reachable notes that there is a connection to a member, maybe a new one: what was sent on the one before may be lost.
func (c *core) reachable(peer uint64) {
	if c.start.up == nil {
		c.start.up = make(map[uint64]bool)
	}
	c.start.up[peer] = true
	if peer == c.leader && c.role != raft.StateLeader {
		c.own.again()
		c.askAgain()
	}
	c.hurry()
}

// unreachable notes that the connection to a member is gone. If nobody listens there any more, the member is not only
// slow: a leader that is gone is not waited for until its time is up.
func (c *core) unreachable(peer uint64, gone bool) {
	delete(c.start.up, peer)
	c.node.ReportUnreachable(peer)
	if gone && peer == c.leader && c.role == raft.StateFollower {
		// An error would say that this member can't; then the election timeout decides.
		_ = c.node.ForgetLeader()
		c.start.hurried = false
		c.elect()
	}
}

// hurry begins an election when there is no leader and a quorum can be reached. It spares the election timeout at the start.
func (c *core) hurry() {
	if c.leader == raft.None && c.role == raft.StateFollower {
		c.elect()
	}
}

// elect lets the reachable voter with the lowest id campaign at once and the others a little later, one after the other:
// if all did at the same time, their votes would split. Whether the others vote for it is raft's to say.
func (c *core) elect() {
	s := &c.start
	if s.fresh || s.hurried || !slices.Contains(c.conf.GetVoters(), c.id) {
		return
	}
	n, rank := 1, 0
	for _, id := range c.conf.GetVoters() {
		if id != c.id && s.up[id] {
			n++
			if id < c.id {
				rank++
			}
		}
	}
	if n > len(c.conf.GetVoters())/2 {
		s.hurried, s.campaignIn = true, 1+3*rank
	}
}
