package consensus

import "github.com/gozkd/gozkd/consensus/internal/core"

// peerActivity is the progress of the other members, as of the last tick. Run owns it.
type peerActivity struct {
	peers    []PeerStatus    // as the leader
	relays   []uint64        // see Status.Relays
	inStep   map[uint64]bool // as the leader: members that get entries as they come
	caughtUp int64           // see Counts
	received int64           // see Counts.Checkpoints
}

// update is called before ticks are taken, and counts the members that come into step from the log.
// A member that got a checkpoint was counted when the checkpoint was sent.
func (a *peerActivity) update(c *core.Core) {
	a.peers, a.relays = c.Peers(), c.Relays.Learners()
	if a.peers == nil {
		clear(a.inStep)
	}
	for i := range a.peers {
		p := &a.peers[i]
		switch step := p.Active && p.InStep && p.Match > 0; {
		case p.Checkpoint:
			a.inStep[p.ID] = true
		case step && !a.inStep[p.ID]:
			a.caughtUp++
			a.inStep[p.ID] = true
		case !p.Active:
			a.inStep[p.ID] = false
		}
	}
}
