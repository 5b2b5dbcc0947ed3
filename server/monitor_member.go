package server

import (
	"slices"
	"time"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/internal/serverlist"
)

// monitorMember appends what only a member of an ensemble has: ZooKeeper's values, then ours.
func (s *Server) monitorMember(values values) values {
	st, f := s.node.Status(), s.facts()
	set, _ := s.ensemble()
	mode := s.modeIn(set, st)
	add := func(name string, is any) { values = append(values, Value{Name: name, Is: is}) }
	about := func(id uint64, name string, is any) {
		values = append(values, Value{Name: name, Peer: int(id), Is: is})
	}
	add("quorum_size", int64(len(set.Voters())))
	add("peer_state", peerState(mode, st))
	add("pending_syncs", s.stats.syncsWait.Load())
	if st.Leading {
		add("leader_uptime", time.Since(st.Since).Milliseconds())
		values = s.monitorLearners(values, set, st)
	} else if mode == modeFollower {
		add("synced_observers", int64(0)) // ZooKeeper's followers may have observers of their own
	}

	connected := s.node.Connected()
	add("gozkd_leader_id", int64(st.Leader))
	add("gozkd_epoch", int64(f.zxid.Epoch()))
	add("gozkd_term", int64(st.Term))
	add("gozkd_applied_index", int64(st.Applied))
	// A leader that does not hear from a quorum soon leads no longer, and then nobody follows it.
	add("gozkd_quorum_reachable", flag(st.Leader != 0))
	voters := int64(0)
	for _, id := range st.Voters {
		if id == uint64(s.cfg.MemberID) || slices.Contains(connected, id) {
			voters++
		}
	}
	add("gozkd_voters_connected", voters)
	for _, m := range set {
		if m.ID != uint64(s.cfg.MemberID) {
			about(m.ID, "gozkd_peer_connected", flag(slices.Contains(connected, m.ID)))
		}
	}
	for _, p := range st.Peers {
		if lagKnown(p) {
			about(p.ID, "gozkd_peer_lag_entries", int64(p.Lag))
		}
		about(p.ID, "gozkd_peer_in_step", flag(p.Active && p.InStep))
	}
	return values
}

// monitorLearners appends what the leader knows of the others.
func (s *Server) monitorLearners(values values, set serverlist.Set, st consensus.Status) values {
	var learners, followers, notVoting, observers int64
	for _, p := range st.Peers {
		if !p.Active {
			continue
		}
		learners++
		m, known := set.Get(p.ID)
		switch {
		case !p.InStep:
		case known && m.Role == serverlist.Observer:
			observers++
		default:
			followers++
			if p.Learner {
				notVoting++ // ZooKeeper counts it under both, too
			}
		}
	}
	last, low, high := s.stats.proposals.read()
	return append(values,
		Value{Name: "learners", Is: learners},
		Value{Name: "followers", Is: learners}, // so it was called before 3.6, and tools still ask for it
		Value{Name: "synced_followers", Is: followers},
		Value{Name: "synced_non_voting_followers", Is: notVoting},
		Value{Name: "synced_observers", Is: observers},
		Value{Name: "last_proposal_size", Is: last},
		Value{Name: "min_proposal_size", Is: low},
		Value{Name: "max_proposal_size", Is: high},
	)
}

// lagKnown reports whether the member was heard from since this server leads. One that gets a checkpoint has nothing that counts.
func lagKnown(p consensus.PeerStatus) bool { return p.Match != 0 || p.Checkpoint }

func flag(set bool) int64 {
	if set {
		return 1
	}
	return 0
}
