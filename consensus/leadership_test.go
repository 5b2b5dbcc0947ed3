package consensus

import (
	"testing"
	"time"
)

func TestLeadershipStats(t *testing.T) {
	begin := time.Unix(100, 0)
	var r leadershipStats
	old := Status{}
	step := func(after int, s Status) (LeaderChange, bool, int64) {
		t.Helper()
		change, begun, leaders := r.update(&old, &s, begin.Add(time.Duration(after)*time.Second))
		old = s
		return change, begun, leaders
	}
	step(0, Status{})
	if _, begun, leaders := step(2, Status{Leader: 2, Voter: true}); begun || leaders != 1 {
		t.Errorf("a leader is known: begun %v, leaders %d", begun, leaders)
	}
	got, begun, _ := step(5, Status{Leader: 2, Voter: true, Current: true})
	if want := (LeaderChange{Voter: true, Searched: 2 * time.Second, CaughtUp: 3 * time.Second}); !begun || got != want {
		t.Errorf("the first leader: %+v, want %+v", got, want)
	}
	step(10, Status{Voter: true})
	step(14, Status{Leader: 1, Leading: true, Voter: true})
	got, begun, _ = step(15, Status{Leader: 1, Leading: true, Voter: true, Current: true})
	if want := (LeaderChange{Leading: true, Voter: true, Searched: 4 * time.Second, CaughtUp: time.Second, Unavailable: 5 * time.Second}); !begun || got != want {
		t.Errorf("the second leader: %+v, want %+v", got, want)
	}
	// A leader follows another without a gap that this member sees.
	if _, begun, leaders := step(20, Status{Leader: 3, Voter: true}); begun || leaders != 1 {
		t.Errorf("another leader: begun %v, leaders %d", begun, leaders)
	}
	got, begun, _ = step(21, Status{Leader: 3, Voter: true, Current: true})
	if want := (LeaderChange{Voter: true, CaughtUp: time.Second, Unavailable: time.Second}); !begun || got != want {
		t.Errorf("the third leader: %+v, want %+v", got, want)
	}
}
