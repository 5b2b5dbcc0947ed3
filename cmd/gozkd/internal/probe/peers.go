package probe

import (
	"cmp"
	"fmt"

	"github.com/gozkd/gozkd/internal/memberid"
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
	ID   uint64 `json:"id"` // its number
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

// PeerOf returns what the answers tell about the member with an id. Of leaders that answers
// name, that of the newest term counts.
func PeerOf(id uint64, answers []Monitor) Peer {
	p := Peer{ID: memberid.Number(id), Role: peerUnknown}
	leader, newest := int64(-1), int64(-1)
	reached, judged := false, ""
	for _, m := range answers {
		of := func(name string) (int64, bool) { return m.Int(fmt.Sprintf("gozkd_peer_%d_%s", p.ID, name)) }
		if connected, ok := of("connected"); ok {
			p.Role, reached = peerCutOff, reached || connected > 0
		}
		if inStep, ok := of("in_step"); ok {
			judged = map[bool]string{true: peerInStep, false: peerBehind}[inStep > 0]
		}
		if lag, ok := of("lag_entries"); ok {
			p.Lag = &lag
		}
		to, known := m.Int("gozkd_leader_id")
		if term, ok := m.Int("gozkd_term"); ok && known && to >= 0 && term > newest {
			leader, newest = to, term
		}
	}
	switch {
	case leader >= 0 && memberid.Of(leader) == id:
		p.Role = ModeLeader
	case reached:
		p.Role = cmp.Or(judged, peerConnected)
	}
	return p
}

// OtherPeers returns the members that gave none of the answers: every answer calls them a peer.
func OtherPeers(answers []Monitor) []Peer {
	others := []Peer{}
	for number := 0; number <= memberid.MaxNumber && len(answers) > 0; number++ {
		key, all := fmt.Sprintf("gozkd_peer_%d_connected", number), true
		for _, m := range answers {
			all = all && m[key] != ""
		}
		if all {
			others = append(others, PeerOf(memberid.Of(number), answers))
		}
	}
	return others
}
