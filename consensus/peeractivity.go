package consensus

import "github.com/gozkd/gozkd/consensus/internal/core"

// peerActivity is a leader's knowledge of the other members' activity, as of its last tick. Only
// Run uses it.
type peerActivity struct {
	ticks      uint64
	peers      []PeerStatus
	relays     []uint64          // see Status.Relays
	lastActive map[uint64]uint64 // by member: the tick at which it was last active
	inStep     map[uint64]bool   // members that get entries as they come
	caughtUp   int64             // see Counts
	received   int64             // see Counts.Checkpoints
}

// update is called before that many ticks are taken. Raft clears RecentActive once per election
// timeout, so a member counts as active for one more timeout.
func (a *peerActivity) update(c *core.Core, ticks int) {
	a.ticks += uint64(ticks)
	a.peers, a.relays = c.Peers(), c.Relays()
	if a.peers == nil {
		a.lastActive, a.inStep = nil, nil
		return
	}
	if a.lastActive == nil {
		a.lastActive, a.inStep = make(map[uint64]uint64), make(map[uint64]bool)
		for i := range a.peers {
			a.lastActive[a.peers[i].ID] = a.ticks // a new leader gives them time to answer
		}
	}
	for i := range a.peers {
		p := &a.peers[i]
		if p.Active {
			a.lastActive[p.ID] = a.ticks
		}
		p.Active = a.lastActive[p.ID] != 0 && a.ticks-a.lastActive[p.ID] <= core.ElectionTicks
	}
	a.countInStep()
}

// countInStep counts the members that come into step from the log. Those that got a checkpoint were
// counted when it was sent.
func (a *peerActivity) countInStep() {
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

// transferSucceeded notes that a member has received a checkpoint. No tick may have seen the
// transfer.
func (a *peerActivity) transferSucceeded(to uint64) {
	a.received++
	if a.inStep != nil {
		a.inStep[to] = true
	}
}
