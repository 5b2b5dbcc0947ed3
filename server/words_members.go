package server

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/internal/members"
	"github.com/gozkd/gozkd/proto"
)

// What srvr and mntr call the server's role.
const (
	modeStandalone = "standalone"
	modeLeader     = "leader"
	modeFollower   = "follower"
	modeObserver   = "observer"
)

// mode returns one of them. It is by what a member shall be: one that does not vote yet, because it is still catching up,
// follows all the same.
func (s *Server) mode() string {
	if s.alone() {
		return modeStandalone
	}
	set, _ := s.ensemble()
	return s.modeIn(set, s.node.Status())
}

func (s *Server) modeIn(set members.Set, st consensus.Status) string {
	own, known := set.Get(uint64(s.cfg.MemberID))
	switch {
	case st.Leading:
		return modeLeader
	case known && own.Role == members.Observer, !known && !st.Voter:
		return modeObserver
	}
	return modeFollower
}

// ensemble returns the members as the state has them, or as this server is configured while there is no such state yet.
func (s *Server) ensemble() (set members.Set, version proto.Zxid) {
	s.tree.RLock()
	defer s.tree.RUnlock()
	if set, version = s.state.Config(); version == 0 {
		return s.members, 0
	}
	return set, version
}

// memberSettings are the lines of conf that only a member has.
func (s *Server) memberSettings() []Setting {
	set, _ := s.ensemble()
	own, known := set.Get(uint64(s.cfg.MemberID))
	if !known {
		own, _ = s.members.Get(uint64(s.cfg.MemberID))
	}
	peerType := "0"
	if own.Role == members.Observer {
		peerType = "1"
	}
	return []Setting{
		{"initLimit", strconv.Itoa(s.cfg.InitLimit)},
		{"syncLimit", strconv.Itoa(s.cfg.SyncLimit)},
		{"electionAlg", "3"}, // the only one that ZooKeeper still has
		{"electionPort", strconv.Itoa(own.ElectionPort)},
		{"quorumPort", strconv.Itoa(own.PeerPort)},
		{"peerType", peerType},
	}
}

// peerState is what mntr says of how far the server is in becoming what it is.
func peerState(mode string, st consensus.Status) string {
	if st.Leader == 0 {
		return "looking"
	}
	verb := map[string]string{modeLeader: "leading", modeFollower: "following", modeObserver: "observing"}[mode]
	if !st.Current {
		return verb + " - synchronization"
	}
	return verb + " - broadcast"
}

// monitorMember writes the lines of mntr that only a member has: ZooKeeper's, then ours.
func (s *Server) monitorMember(line func(key string, value any)) {
	st, f := s.node.Status(), s.facts()
	set, _ := s.ensemble()
	mode := s.modeIn(set, st)
	line("quorum_size", len(set.Voters()))
	line("peer_state", peerState(mode, st))
	line("pending_syncs", s.stats.syncsWait.Load())
	if st.Leading {
		line("leader_uptime", s.cfg.Now().Sub(st.Since).Milliseconds())
		s.monitorLearners(line, set, st)
	}

	connected := s.node.Connected()
	line("gozkd_leader_id", st.Leader)
	line("gozkd_epoch", f.zxid.Epoch())
	line("gozkd_term", st.Term)
	line("gozkd_applied_index", st.Applied)
	// A leader that does not hear from a quorum soon leads no longer, and then nobody follows it.
	line("gozkd_quorum_reachable", flag(st.Leader != 0))
	voters := 0
	for _, id := range st.Voters {
		if id == uint64(s.cfg.MemberID) || slices.Contains(connected, id) {
			voters++
		}
	}
	line("gozkd_voters_connected", voters)
	for _, m := range set {
		if m.ID != uint64(s.cfg.MemberID) {
			line(fmt.Sprintf("gozkd_peer_%d_connected", m.ID), flag(slices.Contains(connected, m.ID)))
		}
	}
	for _, p := range st.Peers {
		if lagKnown(p) {
			line(fmt.Sprintf("gozkd_peer_%d_lag_entries", p.ID), p.Lag)
		}
		line(fmt.Sprintf("gozkd_peer_%d_in_step", p.ID), flag(p.Active && p.InStep))
	}
}

// monitorLearners writes the leader's lines about the others.
func (s *Server) monitorLearners(line func(key string, value any), set members.Set, st consensus.Status) {
	var learners, followers, notVoting, observers int
	for _, p := range st.Peers {
		if !p.Active {
			continue
		}
		learners++
		m, known := set.Get(p.ID)
		switch {
		case !p.InStep:
		case known && m.Role == members.Observer:
			observers++
		default:
			followers++
			if p.Learner {
				notVoting++ // ZooKeeper counts it under both, too
			}
		}
	}
	line("learners", learners)
	line("followers", learners) // so it was called before 3.6, and tools still ask for it
	line("synced_followers", followers)
	line("synced_non_voting_followers", notVoting)
	line("synced_observers", observers)
	last, low, high := s.stats.proposals.read()
	line("last_proposal_size", last)
	line("min_proposal_size", low)
	line("max_proposal_size", high)
}

// lagKnown reports whether the member was heard from since this server leads. One that gets a checkpoint has nothing that counts.
func lagKnown(p consensus.PeerStatus) bool { return p.Match != 0 || p.Checkpoint }

func flag(set bool) int {
	if set {
		return 1
	}
	return 0
}
