package consensus

import (
	"slices"

	"github.com/gozkd/gozkd/consensus/internal/core"
	"github.com/gozkd/gozkd/internal/memberid"
)

// The log lines about this member's part in the ensemble: one for each transition.

func (n *Node) logTransition(old, s *Status) {
	b, log, raftTerm := &n.status, n.cfg.Logger, n.core.RaftTerm()
	oldTerm, oldLeader := b.raftTerm, b.lastLeader
	b.raftTerm = raftTerm
	if s.Leader != 0 {
		b.lastLeader = leaderTerm{s.Leader, raftTerm}
	}
	// An entry that the log had at the start is applied again, which activates nothing.
	if old.Level != 0 && s.Level > max(old.Level, b.recovered) {
		log.Info("feature level activated: versions that do not support it can no longer start with this data", "level", s.Level, "before", old.Level)
	}
	if n.cfg.PeerListener == nil {
		return
	}
	switch {
	case s.Fresh && !old.Fresh && n.cfg.FormTicks < 0:
		log.Error("the data of this server are gone: it waits for an ensemble that lets it in. " +
			"Start all servers, one of which may have the data: docs/guide/operate.md#a-majority-without-data")
	case s.Fresh && !old.Fresh && n.cfg.JoinOnly:
		log.Info("no data yet: this server waits to be let in by an ensemble that exists")
	case s.Fresh && !old.Fresh:
		log.Info("no data yet: this server forms a new ensemble with the others, or is let in by one that exists")
	case old.Fresh && !s.Fresh && n.core.Admitted():
		log.Info("let in by the ensemble: this server fetches its data")
	case s.Outdated && !old.Outdated:
		log.Error("the data directory is older than what this server has acknowledged, as if it was restored from a copy: "+
			"this server takes no part until a leader lets it in again, as a server that lost its data", "proof", n.core.Outdated())
	case old.Outdated && !s.Outdated:
		log.Info("let in again by the ensemble: this server fetches what its data directory lacks")
	}
	if !slices.Equal(old.Voters, s.Voters) {
		log.Info("voters changed", "voters", memberid.Numbers(s.Voters), "learners", memberid.Numbers(s.Learners))
	}
	if old.Leader == s.Leader && old.Leading == s.Leading {
		return
	}
	switch {
	case s.Leading:
		log.Debug("this server leads", "term", raftTerm) // the user of the node logs more once the first entry is applied
	case old.Leading && old.LogStalled:
		log.Warn("this server leads no longer, because the disk of its log does not answer",
			"leader", memberid.Number(s.Leader), "term", raftTerm)
	case s.Leader != 0 && oldLeader == b.lastLeader:
		log.Info("the leader is heard from again", "leader", memberid.Number(s.Leader), "term", raftTerm)
	case s.Leader != 0:
		log.Debug("another server leads", "leader", memberid.Number(s.Leader), "term", raftTerm)
	case old.Leading && oldTerm == raftTerm:
		// The term rises when another leader is elected, and stays the same when this leader loses
		// its quorum.
		log.Warn("quorum lost: too few voters answer, so this server leads no longer",
			"voters", memberid.Numbers(s.Voters), "connected", memberid.Numbers(n.Connected()))
	case old.Leading:
		log.Info("this server leads no longer: there is a new election", "term", raftTerm)
	default:
		log.Info("the leader is gone or silent: there is a new election",
			"leader_before", memberid.Number(old.Leader), "term", raftTerm)
	}
}

// logJoin logs, on the leader, that a member came without data, or with old data.
func (n *Node) logJoin(m *core.Message) {
	b := &n.status
	nonce, joins := m.JoinNonce()
	if !joins || !b.current.Load().Leading || b.joins[m.From] == nonce || n.core.Membership.AdmittedLife(m.From, nonce) {
		return
	}
	b.joins[m.From] = nonce
	switch {
	case m.JoinsOutdated():
		n.cfg.Logger.Warn("a member's data directory is older than what the member has acknowledged, as if it was restored from a copy: "+
			"it is let in anew, and votes when it has caught up", "member", memberid.Number(m.From))
	case slices.Contains(n.core.Conf().GetVoters(), m.From):
		n.cfg.Logger.Warn("a voter comes without data, new or lost: it is let in anew, and votes when it has caught up",
			"member", memberid.Number(m.From))
	default:
		n.cfg.Logger.Info("a member comes without data: it is let in", "member", memberid.Number(m.From))
	}
}
