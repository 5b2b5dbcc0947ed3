package core

import (
	"testing"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// Also without a serial, voters are removed only when enough new voters are ready.
func TestMembership_VotersStayUntilTheOthersAreReady(t *testing.T) {
	w := newWorld(t, 1, 3)
	w.calm(func() bool { l := w.leader(); return l != nil && l.core.Current() })
	c := w.leader().core
	for _, voters := range [][]uint64{{c.id, 5, 6}, {4, 5, 6}} {
		c.SetTarget(Target{Voters: voters})
		ready, all, quorum := c.Membership.readyVoters(c.Membership.target)
		if cc := c.Membership.difference(c.Membership.target, ready, all || quorum); len(cc.GetChanges()) > 0 {
			t.Errorf("target %v with %v ready: %v", voters, ready, cc.GetChanges())
		}
	}
}

// A member that is added again is not removed at once for its silence before.
func TestMembership_SilenceEndsWhenAMemberIsAdded(t *testing.T) {
	w := newWorld(t, 1, 3)
	w.calm(func() bool { l := w.leader(); return l != nil && l.core.Current() })
	c := w.leader().core
	c.Membership.silentTicks[9] = 2 * patienceTicks
	data, err := proto.Marshal(&raftpb.ConfChangeV2{Changes: []*raftpb.ConfChangeSingle{confChange(raftpb.ConfChangeAddLearnerNode, 9)}})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Membership.apply(&raftpb.Entry{Data: data}); err != nil {
		t.Fatal(err)
	}
	if cc := c.Membership.difference(c.Membership.target, nil, false); len(cc.GetChanges()) > 0 {
		t.Errorf("it is removed: %v", cc.GetChanges())
	}
}
