package consensus

import (
	"testing"
	"testing/cryptotest"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
)

// TestSim runs an ensemble through plans that rapid draws.
func TestSim(t *testing.T) {
	exhaustive.Checks(t, 5, 100)
	var all simStats
	runs := 0
	rapid.Check(t, func(rt *rapid.T) {
		p := planGen.Draw(rt, "plan")
		cryptotest.SetGlobalRandom(t, p.Seed) // raft draws its election timeouts there
		stats, err := simulate(p, bugNone)
		if err != nil {
			rt.Fatalf("%v\n%v", err, p)
		}
		all.add(&stats)
		runs++
	})
	all.log(t)
	if few := all.few(runs); runs >= 1000 && len(few) > 0 {
		t.Errorf("in %d runs there were fewer than %d decisions of some kinds: %q", runs, runs/20, few)
	}
}

// TestSim_Regress runs the smallest plans that have found a bug. docs/quality/bugs.md describes the
// bugs.
func TestSim_Regress(t *testing.T) {
	for name, p := range map[string]plan{
		// A request is in the log after an installed checkpoint, and is sent again under another
		// incarnation.
		"install keeps the stream": {
			Seed: 3, Members: 3, StartMs: []int{0, 0, 0}, Rate: 50, Rapid: true, Steps: []step{
				{GapMs: 3, Kind: stepCutOff, Member: 2, Other: 0, ForMs: 800}, {GapMs: 3, Kind: stepBurst, Member: 0, Other: 1, ForMs: 1},
			}},
		// A member without data takes an incarnation that a later lost life had used.
		"incarnations of a lost life": {
			Members: 3, StartMs: []int{0, 0, 0}, Rate: 1, Steps: []step{
				{GapMs: 3, Kind: stepPowerLoss, Member: 0, Other: 0, ForMs: 1}, {GapMs: 3, Kind: stepClockJump, Member: 0, Other: 0, ForMs: 1},
				{GapMs: 1000, Kind: stepEmptyDir, Member: 0, Other: 0, ForMs: 1},
			}},
		// A member that has formed the ensemble is taken for a member without state, because its
		// request to be let in comes late.
		"a late request to be let in": {
			Seed: 2, Members: 5, StartMs: []int{0, 1000, 10, 8000, 8000}, Rate: 1, Steps: []step{
				{GapMs: 9, Kind: stepReorder, Member: toLeader, Other: 3, ForMs: 5000},
			}},
		// The only voter needs the vote of a member that it has removed, and that has a longer log.
		"a removed member with a longer log": {
			Seed: 0xd15637, Members: 3, StartMs: []int{8000, 0, 10}, Rate: 1, Rapid: true, Steps: []step{
				{GapMs: 50403, Kind: stepTarget, Member: 0, Other: 2, ForMs: 5000}, {GapMs: 40170, Kind: stepTarget, Member: 4, Other: 4, ForMs: 1},
				{GapMs: 20, Kind: stepPowerLoss, Member: 0, Other: 1, ForMs: 1},
			}},
	} {
		t.Run(name, func(t *testing.T) {
			cryptotest.SetGlobalRandom(t, p.Seed)
			if _, err := simulate(p, bugNone); err != nil {
				t.Fatalf("%v\n%v", err, p)
			}
		})
	}
}

// TestSim_RolledBack restores data directories from copies, with requests and other starts in
// between, and in every other plan with all other faults.
func TestSim_RolledBack(t *testing.T) {
	few := huntGen([]stepKind{stepRollBack, stepRollBack, stepRollBack, stepKill, stepKillLeader, stepBurst, stepClockJump})
	many := huntGen([]stepKind{
		stepRollBack, stepRollBack, stepRollBack, stepRollBack, stepKillLeader, stepBurst, stepClockJump, stepPowerLoss, stepCrashAtOp,
		stepPowerLossOfAll, stepCutOff, stepCutOneWay, stepSplit, stepEmptyDir, stepTarget, stepHandOver, stepCheckpoint,
		stepBadTransfers, stepStop, stepHangDisk, stepReorder,
	})
	var all simStats
	for seed := range exhaustive.Or(6, 400) { // the last one finds mutant 171
		p := many.Example(seed)
		if seed%2 == 0 {
			p = few.Example(seed)
		}
		cryptotest.SetGlobalRandom(t, p.Seed)
		stats, err := simulate(p, bugNone)
		if err != nil {
			t.Fatalf("plan %d: %v\n%v", seed, err, p)
		}
		all.add(&stats)
	}
	all.log(t)
	if all.outdated == 0 {
		t.Errorf("%d members were restored from a copy, %d were found outdated", all.rolledBack, all.outdated)
	}
}

// TestSim_FindsPlantedBugs tests the simulator: it must find each plantedBug.
func TestSim_FindsPlantedBugs(t *testing.T) {
	for bug := bugNone + 1; bug < numBugs; bug++ {
		t.Run(bug.String(), func(t *testing.T) {
			const most = 1000
			plans := huntGen(bugHunts[bug])
			for i := range most {
				seed := firstPlans[bug] + i
				p := plans.Example(seed)
				cryptotest.SetGlobalRandom(t, p.Seed)
				if _, err := simulate(p, bug); err != nil {
					t.Logf("plan %d: %v", seed, err)
					return
				}
			}
			t.Errorf("not found by %d plans", most)
		})
	}
}

// TestSim_SkipsOnlyQuietTime checks that a run has the same result if quiet time, in which nothing
// happens except heartbeats, is not skipped.
func TestSim_SkipsOnlyQuietTime(t *testing.T) {
	skipped := int64(0)
	for seed := range exhaustive.Or(2, 60) {
		p := planGen.Example(seed)
		run := func(noSkip bool) (simStats, uint64) {
			cryptotest.SetGlobalRandom(t, p.Seed)
			w := newSimWorld(p, bugNone)
			w.noSkip = noSkip
			if err := w.simulate(); err != nil {
				t.Fatal(err)
			}
			return w.stats, w.checks.ref[w.checks.last()].digest
		}
		short, shortDigest := run(false)
		long, longDigest := run(true)
		skipped += short.skippedMs
		short.messages, short.skippedMs, long.messages = 0, 0, 0               // heartbeats
		short.progress, long.progress = simProgressStats{}, simProgressStats{} // samples, at other times
		short.decisions, long.decisions = simDecisions{}, simDecisions{}       // counted in each tick
		if short != long || shortDigest != longDigest {
			t.Errorf("plan %d: with quiet time skipped\n%v, digest %x; without\n%v, digest %x", seed, &short, shortDigest, &long, longDigest)
		}
	}
	if skipped == 0 {
		t.Error("nothing was skipped")
	}
}
