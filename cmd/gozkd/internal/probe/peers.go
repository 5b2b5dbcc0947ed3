package probe

import (
	"cmp"
	"fmt"
)

// Roles of a Peer, beside ModeLeader.
const (
	peerInStep    = "in step"
	peerBehind    = "behind"    // connected, but not in step with the leader
	peerConnected = "connected" // and the leader gave no answer
	peerCutOff    = "cut off"   // no member that answered can send messages to it
	peerUnknown   = "unknown"
)

// Peer is what the answers to mntr of some members tell about another member. Only gozkd tells it.
type Peer struct {
	ID   uint64 `json:"id"`
	Role string `json:"role"`
	// Lag is in log entries; nil unless the leader answered and has heard from the peer.
	Lag *int64 `json:"lag,omitempty"`
}

// Up reports whether the peer serves, as far as the others can tell.
func (p Peer) Up() bool {
	return p.Role == ModeLeader || p.Role == peerInStep || p.Role == peerConnected
}

// Unknown reports whether the answers tell nothing.
func (p Peer) Unknown() bool { return p.Role == peerUnknown }

// PeerOf returns what the answers tell about the member with a number. Of leaders that answers
// name, that of the newest term counts.
func PeerOf(id uint64, answers []Monitor) Peer {
	p := Peer{ID: id, Role: peerUnknown}
	leader, newest := int64(0), int64(-1)
	reached, judged := false, ""
	for _, m := range answers {
		of := func(name string) (int64, bool) { return m.Int(fmt.Sprintf("gozkd_peer_%d_%s", id, name)) }
		if connected, ok := of("connected"); ok {
			p.Role, reached = peerCutOff, reached || connected > 0
		}
		if inStep, ok := of("in_step"); ok {
			judged = map[bool]string{true: peerInStep, false: peerBehind}[inStep > 0]
		}
		if lag, ok := of("lag_entries"); ok {
			p.Lag = &lag
		}
		to, _ := m.Int("gozkd_leader_id")
		if term, ok := m.Int("gozkd_term"); ok && to > 0 && term > newest {
			leader, newest = to, term
		}
	}
	switch {
	case leader > 0 && uint64(leader) == id:
		p.Role = ModeLeader
	case reached:
		p.Role = cmp.Or(judged, peerConnected)
	}
	return p
}

// OtherPeers returns the members that gave none of the answers: every answer calls them a peer.
func OtherPeers(answers []Monitor) []Peer {
	others := []Peer{}
	const most = 255 // the largest number of a member
	for id := uint64(1); id <= most && len(answers) > 0; id++ {
		key, all := fmt.Sprintf("gozkd_peer_%d_connected", id), true
		for _, m := range answers {
			all = all && m[key] != ""
		}
		if all {
			others = append(others, PeerOf(id, answers))
		}
	}
	return others
}
