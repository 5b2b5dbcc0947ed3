package core

import "testing"

// Also without a serial, voters are removed only when enough new voters are ready.
func TestMembership_VotersStayUntilTheOthersAreReady(t *testing.T) {
	w := newWorld(t, 1, 3)
	w.calm(func() bool { l := w.leader(); return l != nil && l.core.Current() })
	c := w.leader().core
	for _, voters := range [][]uint64{{c.id, 5, 6}, {4, 5, 6}} {
		c.SetTarget(Target{Voters: voters})
		ready, all, quorum := c.readyVoters(c.membership.target)
		if cc := c.difference(c.membership.target, ready, all || quorum); len(cc.GetChanges()) > 0 {
			t.Errorf("target %v with %v ready: %v", voters, ready, cc.GetChanges())
		}
	}
}
