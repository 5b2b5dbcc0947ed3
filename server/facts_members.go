package server

import (
	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/internal/serverlist"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/facts"
)

// mode returns the role of the server as srvr and mntr name it. The mode follows from the
// configured role: a member that does not vote yet, because it lags, is a follower all the same.
func (f *Facts) mode() string {
	if f.alone() && !f.cfg.Standby {
		return facts.Standalone
	}
	set, _ := f.ensemble()
	return f.modeIn(set, f.node.Status())
}

func (f *Facts) modeIn(set serverlist.Set, st consensus.Status) string {
	own, known := set.Get(uint64(f.cfg.MemberID))
	switch {
	case f.leader.readOnly.Load():
		return facts.ReadOnly
	case st.Leading:
		return facts.Leader
	case known && own.Role == serverlist.Observer, !known && !st.Voter:
		return facts.Observer
	}
	return facts.Follower
}

// ensemble returns the members as the state has them, or, as long as the state has none, as this
// server is configured.
func (s *shared) ensemble() (set serverlist.Set, version proto.Zxid) {
	if set, version, _ = s.state.membership(); version == 0 {
		return s.members, 0
	}
	return set, version
}

// Membership returns the members as /zookeeper/config has them, or "" for a standalone server.
func (f *Facts) Membership() string {
	if f.alone() {
		return ""
	}
	set, version := f.ensemble()
	return set.Text(version)
}

// Members returns the servers of the ensemble in ascending order of their numbers: the members that
// the ensemble agreed on, or, as long as this server knows of no agreement, those of its
// configuration. A standalone server has none. The caller owns the result.
func (f *Facts) Members() []facts.MemberStatus {
	set, _ := f.ensemble()
	var links []consensus.PeerLink
	if f.life.Accepting.Load() {
		links = f.node.PeerLinks()
	}
	all := make([]MemberStatus, 0, len(set))
	for _, m := range set {
		status := MemberStatus{
			ID: int(m.ID), Observer: m.Role == serverlist.Observer, PeerAddress: m.PeerAddress(), ElectionAddress: m.ElectionAddress(), ClientAddress: m.ClientAddress(),
		}
		status.LinkTo, status.LinkFrom = peerLink(links, m.ID)
		all = append(all, status)
	}
	return all
}

func peerState(mode string, st consensus.Status) string {
	if st.Leader == 0 || mode == facts.ReadOnly {
		return "looking"
	}
	verb := map[string]string{facts.Leader: "leading", facts.Follower: "following", facts.Observer: "observing"}[mode]
	if !st.Current {
		return verb + " - synchronization"
	}
	return verb + " - broadcast"
}
