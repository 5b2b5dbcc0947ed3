package consensus

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// plan is one run of the simulator: how the ensemble begins, and which faults it meets. rapid draws
// it, and shrinks it after a failure. The fine choices (which message is lost, which sector is
// torn) come from a generator with the plan's seed.
type plan struct {
	Seed    uint64
	Members int
	// Learners is the number of initial members that don't vote: those with the highest ids.
	Learners int
	Relayed  bool // learners ask voters for entries
	// StartMs is when each member is first started; -1: when everything is healed.
	StartMs []int
	Encode  bool // messages go through their frames
	Rate    int  // requests per member and 10 s
	Rapid   bool // small bounds for the log in memory, so that checkpoints are sent often
	// Levels is the highest feature level of each member's first version; nil: all versions have
	// only level 1.
	Levels []int
	// Disturbed plans have faults after decisions about members, and restore directories when that
	// is possible.
	Disturbed bool
	Steps     []step
}

// step is one fault, or an action of an operator.
type step struct {
	GapMs  int // after the previous step
	Kind   stepKind
	Member int // 0 ...; modulo the number of members; toLeader: the leader
	Other  int // another, or a choice
	ForMs  int // how long it lasts
}

// toLeader is the Member of a step for the leader.
const toLeader = 5

type stepKind int

const (
	stepPowerLoss stepKind = iota
	stepKill
	stepCrashAtOp
	stepPowerLossOfAll
	stepKillLeader
	stepCutOff
	stepCutOneWay
	stepSplit
	stepLossyNet
	stepSlowNet
	stepReorder
	stepSlowDisk
	stepHangDisk
	stepStop
	stepClockJump
	stepEmptyDir
	stepTarget
	stepHandOver
	stepBadTransfers
	stepBurst
	stepCheckpoint
	stepUpgrade
	stepDowngrade
	stepRollBack
	stepLimit
	stepFullDisk
	stepLittleMemory
	numStepKinds
)

var stepNames = [numStepKinds]string{
	"power loss", "kill", "crash at a disk operation", "power loss of all", "kill of the leader", "cut off", "cut off one way",
	"split", "lossy network", "slow network", "reordering network", "slow disk", "hanging disk", "process stopped", "clock jump",
	"emptied directory", "membership change", "leader transfer", "broken checkpoint transfers", "burst of requests", "checkpoint", "upgrade", "downgrade",
	"directory restored from a copy", "limit of growth", "full disk", "little memory",
}

func (k stepKind) String() string { return stepNames[k] }

func (p plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, %d members (%d learners, relayed %v), disturbed %v, started at %v ms, %d requests per 10 s, encode %v, small memory %v, levels %v\n",
		p.Seed, p.Members, p.Learners, p.Relayed, p.Disturbed, p.StartMs, p.Rate, p.Encode, p.Rapid, p.Levels)
	at := 0
	for _, s := range p.Steps {
		at += s.GapMs
		target := fmt.Sprintf("member %d", s.Member%p.Members+1)
		if s.Member == toLeader {
			target = "leader"
		}
		fmt.Fprintf(&b, "%8d ms: %v, %s, other %d, for %d ms\n", at, s.Kind, target, s.Other%p.Members+1, s.ForMs)
	}
	return b.String()
}

// stepWeights has each kind once, and the more frequent kinds several times.
var stepWeights = []stepKind{
	stepPowerLoss, stepKill, stepCrashAtOp, stepPowerLossOfAll, stepKillLeader, stepCutOff, stepCutOneWay, stepSplit, stepLossyNet,
	stepSlowNet, stepReorder, stepSlowDisk, stepHangDisk, stepStop, stepClockJump, stepEmptyDir, stepTarget, stepHandOver, stepBadTransfers,
	stepBurst, stepCheckpoint, stepUpgrade, stepDowngrade,
	stepUpgrade, stepUpgrade, stepCrashAtOp, stepCutOff, stepCutOneWay, stepEmptyDir, stepTarget, stepTarget, stepTarget, stepHandOver, stepKillLeader, stepStop,
	stepHangDisk,
	stepRollBack, stepRollBack, stepRollBack,
	stepLimit, stepLimit, stepFullDisk, stepLittleMemory,
}

var stepGen = rapid.Custom(func(t *rapid.T) step {
	s := step{
		Kind:   rapid.SampledFrom(stepWeights).Draw(t, "kind"),
		Member: rapid.SampledFrom([]int{0, 1, 2, 3, 4, toLeader, toLeader}).Draw(t, "member"),
		Other:  rapid.IntRange(0, 4).Draw(t, "other"),
		GapMs:  rapid.SampledFrom([]int{3, 20, 150, 400, 1000, 2000, 5000, 10_000, 20_000, 40_000}).Draw(t, "gap"),
		ForMs:  rapid.SampledFrom([]int{1, 30, 300, 800, 2000, 5000, 15_000, 60_000}).Draw(t, "for"),
	}
	return s
})

var planGen = rapid.Custom(func(t *rapid.T) plan {
	p := plan{
		Seed:    rapid.Uint64().Draw(t, "seed"),
		Members: rapid.SampledFrom([]int{3, 3, 3, 5}).Draw(t, "members"),
		Encode:  rapid.SampledFrom([]bool{false, false, false, true}).Draw(t, "encode"),
		Rapid:   rapid.Bool().Draw(t, "small memory"),
		Rate:    rapid.SampledFrom([]int{1, 1, 1, 3, 10}).Draw(t, "rate"),
	}
	p.Learners = rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "learners")
	for i := range p.Members {
		start := []int{0, 0, 0, 10, 1000, 8000}
		if i == p.Members-1 {
			start = []int{0, 0, 0, 10, 1000, 8000, 30_000, -1}
		}
		p.StartMs = append(p.StartMs, rapid.SampledFrom(start).Draw(t, "start"))
	}
	if rapid.Bool().Draw(t, "versions") {
		for range p.Members {
			p.Levels = append(p.Levels, rapid.SampledFrom([]int{1, 1, 1, 2}).Draw(t, "level"))
		}
	}
	for range 6 { // rapid's slices are short
		p.Steps = append(p.Steps, rapid.SliceOfN(stepGen, 0, 10).Draw(t, "steps")...)
	}
	p.Relayed = rapid.Bool().Draw(t, "relayed")
	p.Disturbed = rapid.Bool().Draw(t, "disturbed")
	return p
})

// huntGen makes plans of many steps of a few kinds, for a bug that needs only those.
func huntGen(kinds []stepKind) *rapid.Generator[plan] {
	return rapid.Custom(func(t *rapid.T) plan {
		p := plan{Seed: rapid.Uint64().Draw(t, "seed"), Members: 3, StartMs: []int{0, 0, 0}, Rate: 30, Rapid: true}
		if slices.Contains(kinds, stepUpgrade) {
			p.Levels = []int{1, 1, 1}
		}
		for range 40 {
			p.Steps = append(p.Steps, step{
				Kind:   rapid.SampledFrom(kinds).Draw(t, "kind"),
				Member: rapid.SampledFrom([]int{0, 1, 2, toLeader}).Draw(t, "member"),
				Other:  rapid.IntRange(0, 4).Draw(t, "other"),
				GapMs:  rapid.SampledFrom([]int{20, 150, 400, 1000, 5000}).Draw(t, "gap"),
				ForMs:  rapid.SampledFrom([]int{30, 300, 2000, 5000}).Draw(t, "for"),
			})
		}
		return p
	})
}
