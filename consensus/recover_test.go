package consensus

import (
	"testing"

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
