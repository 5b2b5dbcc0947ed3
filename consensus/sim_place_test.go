package consensus

import (
	"testing"
	"testing/cryptotest"
)

// TestSim_ReadsInPlace: members with little memory that were cut off for so long that they need a
// checkpoint drop their state before they read it, with faults of the others beside.
func TestSim_ReadsInPlace(t *testing.T) {
	var all simStats
	for seed := range uint64(5) {
		cryptotest.SetGlobalRandom(t, seed)
		steps := []step{
			{GapMs: 5000, Kind: stepLittleMemory, Member: int(seed) % 3, Other: 1, ForMs: 8000},
			{GapMs: 3, Kind: stepCutOff, Member: int(seed) % 3, Other: 0, ForMs: 5000},
			{GapMs: 1000, Kind: stepBurst, Member: toLeader, Other: 3, ForMs: 1},
			{GapMs: 1000, Kind: stepCheckpoint, Member: toLeader, Other: 0, ForMs: 1},
			{GapMs: 5000, Kind: stepPowerLoss, Member: toLeader, Other: 0, ForMs: 1},
		}
		stats, err := simulate(plan{Seed: seed, Members: 3, StartMs: []int{0, 0, 0}, Rate: 50, Rapid: true, Steps: steps}, bugNone)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		all.add(&stats)
	}
	all.log(t)
	if all.readInPlace == 0 {
		t.Errorf("no member read a state in place, of %d that installed one", all.installed)
	}
}
