package server

import (
	"testing"
	"time"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/memlimit"
	"github.com/gozkd/gozkd/server/internal/capacity"
)

// TestGrowth_LimitAsPercentage: a percentage is that of the memory, 75 unless it is set, and a
// number of bytes goes before it.
func TestGrowth_LimitAsPercentage(t *testing.T) {
	percent := func(n int64) int64 { return memlimit.Available() / 100 * n }
	for _, c := range []struct {
		cfg  Config
		want int64 // 0: an error
	}{
		{Config{}, percent(75)}, {Config{DataLimitPercent: 40}, percent(40)}, {Config{DataLimitPercent: 40, DataLimit: 1000}, 1000},
		{Config{DataLimitPercent: -1}, 0}, {Config{DataLimitPercent: 101}, 0},
	} {
		s, err := New(c.cfg)
		if (err == nil) != (c.want != 0) || err == nil && s.growth.gauge.Allowed != c.want {
			t.Errorf("%+v: %v, want %d", c.cfg, err, c.want)
		}
	}
}

// TestGrowth_WithoutLimitIsNeverCrowded: then a received checkpoint is read beside the present one.
func TestGrowth_WithoutLimitIsNeverCrowded(t *testing.T) {
	s, err := New(Config{DataLimit: -1, InProcess: true})
	if err != nil {
		t.Fatal(err)
	}
	s.state.tree = datatree.New(datatree.Options{})
	if s.growth.crowded() {
		t.Error("crowded without a limit")
	}
}

// TestDropState_ReleasesTheState: if the checkpoint cannot be read, with or without a call of
// Restore, the lock is free: otherwise Close would wait for ever.
func TestDropState_ReleasesTheState(t *testing.T) {
	for name, restore := range map[string]bool{"before Restore": false, "after Restore": true} {
		s, err := New(Config{InProcess: true})
		if err != nil {
			t.Fatal(err)
		}
		s.state.tree = datatree.New(datatree.Options{})
		a := newApplier(s)
		release := a.dropState()
		if restore {
			if _, err := a.Restore(pairs(wholeTree(t), func(_ int, k, v []byte) ([]byte, []byte) { return k, v })); err != nil {
				t.Fatal(err)
			}
		}
		release()
		if !s.state.TryLock() {
			t.Errorf("%s: the state is locked", name)
		}
	}
}

// TestGrowth_ForgetsOldReports: a server that leads again does not raise the limit by what a member
// said when the server led before.
func TestGrowth_ForgetsOldReports(t *testing.T) {
	var g growth
	begun := time.Unix(1, 0)
	g.begin(begun)
	g.board.Report(2, capacity.Ability{Weight: 900, Cause: capacity.Memory})
	g.begin(begun.Add(time.Hour))
	g.board.Report(1, capacity.Ability{Weight: 1000, Cause: capacity.Memory})
	now := capacity.Ability{Weight: 500, Cause: capacity.Memory, Member: 2}
	if next, propose := g.board.Propose(now, 480, func(uint64) bool { return true }); propose {
		t.Errorf("the limit becomes %+v", next)
	}
}
