package server

import (
	"strconv"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/internal/serverlist"
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

func (s *Server) modeIn(set serverlist.Set, st consensus.Status) string {
	own, known := set.Get(uint64(s.cfg.MemberID))
	switch {
	case st.Leading:
		return modeLeader
	case known && own.Role == serverlist.Observer, !known && !st.Voter:
		return modeObserver
	}
	return modeFollower
}

// ensemble returns the members as the state has them, or as this server is configured while there is no such state yet.
func (s *Server) ensemble() (set serverlist.Set, version proto.Zxid) {
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
	if own.Role == serverlist.Observer {
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
