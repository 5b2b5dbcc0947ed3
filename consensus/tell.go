package consensus

import "slices"

// What the log says of this member's part in the ensemble: once for each change.

// reignOf says who leads, and since which term.
type reignOf struct{ leader, term uint64 }

// tell compares two views.
func (n *Node) tell(old, s *Status) {
	c, log := n.core, n.cfg.Logger
	term, reign := n.publishedTerm, n.reign
	n.publishedTerm = c.raftTerm
	if s.Leader != 0 {
		n.reign = reignOf{s.Leader, c.raftTerm}
	}
	if n.cfg.PeerListener == nil {
		return
	}
	switch {
	case s.Fresh && !old.Fresh:
		log.Info("no data yet: this server forms a new ensemble with the others, or is let in by one that exists")
	case old.Fresh && !s.Fresh && c.start.minTerm != 0:
		log.Info("let in by the ensemble: this server fetches its data")
	}
	if !slices.Equal(old.Voters, s.Voters) {
		log.Info("who votes", "voters", s.Voters, "learners", s.Learners)
	}
	if old.Leader == s.Leader && old.Leading == s.Leading {
		return
	}
	switch {
	case s.Leading:
		log.Debug("this server leads", "term", c.raftTerm) // who uses the node says more when the first entry is applied
	case s.Leader != 0 && reign == n.reign:
		log.Info("the leader is heard from again", "leader", s.Leader, "term", c.raftTerm)
	case s.Leader != 0:
		log.Debug("another server leads", "leader", s.Leader, "term", c.raftTerm)
	case old.Leading && term == c.raftTerm:
		// Raft goes to a new term when another is elected, but stays when it does not hear of a quorum.
		log.Warn("quorum lost: too few voters answer, so this server leads no longer", "voters", s.Voters, "connected", n.Connected())
	case old.Leading:
		log.Info("this server leads no longer: there is a new election", "term", c.raftTerm)
	default:
		log.Info("the leader is gone or silent: there is a new election", "leader_before", old.Leader, "term", c.raftTerm)
	}
}

// tellOfJoin says on the leader that a member came without data.
func (n *Node) tellOfJoin(m *message) {
	c := n.core
	if m.join == nil || !n.status.Load().Leading || n.strangers[m.from] == m.join.nonce || c.member.admitted[m.from] == m.join.nonce {
		return
	}
	if n.strangers == nil {
		n.strangers = make(map[uint64]uint64)
	}
	n.strangers[m.from] = m.join.nonce
	if slices.Contains(c.conf.GetVoters(), m.from) {
		n.cfg.Logger.Warn("a voter comes without data, new or lost: it is let in anew, and votes when it has caught up", "member", m.from)
	} else {
		n.cfg.Logger.Info("a member comes without data: it is let in", "member", m.from)
	}
}
