package consensus

import (
	"errors"
	"testing"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/gozkd/gozkd/consensus/internal/core"
)

// No two starts have the same incarnation, even if both begin with the same directory, and whatever
// the clock says. The incarnation grows.
func TestRecovered_IncarnationsAreUnique(t *testing.T) {
	const clock = 1_700_000_000_000 << 20
	for name, r := range map[string]recovered{
		"new":                   {},
		"the clock went back":   {state: core.LogState{Incarnation: clock + 1<<50}},
		"from before the clock": {state: core.LogState{Incarnation: 7}},
		"a newer checkpoint":    {state: core.LogState{Incarnation: 7}, earlier: clock + 1<<50},
	} {
		first, copied := r, r
		first.nextIncarnation(clock+1, 1<<63)
		copied.nextIncarnation(clock+2, 1<<62)
		if first.state.Incarnation == copied.state.Incarnation {
			t.Errorf("%s: two starts have incarnation %x", name, first.state.Incarnation)
		}
		if past := max(r.state.Incarnation, r.earlier); first.state.Incarnation <= past || first.past != past {
			t.Errorf("%s: incarnation %x after %x", name, first.state.Incarnation, past)
		}
	}
}

// The entries up to a damaged checkpoint stay committed, although the log may say less: a member
// that finds no quorum shows them, and raft knows the membership that they made.
func TestC4_PreviousCheckpointCommit(t *testing.T) {
	r := recovered{meta: core.Meta{Index: 5}, entries: make([]*raftpb.Entry, 5), state: core.LogState{Commit: 6}}
	l := loadedCheckpoint{found: true, damage: errors.New("damaged"), newest: 8}
	if err := l.continued(&r, nil); err != nil || r.state.Commit != 8 {
		t.Errorf("entries up to %d are committed, %v; want 8", r.state.Commit, err)
	}
}
