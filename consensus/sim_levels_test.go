package consensus

import (
	"testing"
	"testing/cryptotest"

	"go.etcd.io/raft/v3/raftpb"
	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/consensus/internal/core"
	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
)

// Members of the simulator may be of a version that supports feature level 1 only, or of one that
// also supports level 2. Upgrades and downgrades restart them as the other version.

// simLevel is the level that the simulator's ensembles begin with.
const simLevel Level = 1

// level returns the highest level of a member's first version.
func (p *plan) level(i int) Level {
	if p.Levels == nil {
		return simLevel
	}
	return Level(p.Levels[i])
}

// supports makes the member one of a version with this highest level, from its next start on.
func (m *simMember) supports(most Level) { m.levels = LevelRange{Min: simLevel, Max: most} }

// levelInfo is what a member says in its hello.
func (w *simWorld) levelInfo(m *simMember) core.LevelInfo {
	info := m.core.Levels.Info()
	if w.bug == bugLevelTooEarly {
		info.Ready = 2
	}
	return info
}

// compatible reports whether two running members accept each other's hello.
func (w *simWorld) compatible(a, b *simMember) bool {
	return core.CheckPeers(a.id, a.core.Levels.Info(), b.id, b.core.Levels.Info()) == nil
}

// changeVersion restarts a member as another version.
func (w *simWorld) changeVersion(m *simMember, up bool, ms int64) bool {
	if w.plan.Levels == nil || (m.levels.Max > simLevel) == up || !w.kill(m, false, ms) {
		return false
	}
	if m.supports(2); !up {
		m.supports(simLevel)
		m.downgradedAt = w.now
	}
	return true
}

// upgrade makes a member one of the newest version.
func (w *simWorld) upgrade(m *simMember) {
	if w.plan.Levels == nil || m.levels.Max > simLevel {
		return
	}
	m.stop(false)
	m.supports(2)
}

// refused ends the life of a member that found its data to be of another version's level, and lets
// the operator start the newer version.
func (m *simMember) refused(err error) {
	if m.levels.Max > simLevel {
		m.w.fatalf("member %d stops: %v", m.id, err)
	}
	m.w.stats.levelRefused++
	m.stop(false)
	m.supports(2)
	m.w.after(100+m.w.rng.Int64N(5000), nil, m.restart)
}

// level checks that a checkpoint has the level of its index.
func (c *simChecks) level(m *simMember, l Level) {
	if want := c.ref[m.applied].level; l != want {
		m.w.fatalf("member %d has a checkpoint of index %d with level %d, it was %d", m.id, m.applied, l, want)
	}
}

// levelChange checks, when an entry that changes the level is first written, that all members
// support it, except those that were downgraded a moment ago.
func (c *simChecks) levelChange(m *simMember, e *raftpb.Entry) {
	l := core.EntryLevel(e)
	if _, known := c.entries[simEntry{e.GetIndex(), e.GetTerm()}]; l == 0 || known {
		return
	}
	for _, o := range m.w.members {
		conf := m.core.Conf()
		in := contains(conf.GetVoters(), o.id) || contains(conf.GetLearners(), o.id)
		if in && !o.levels.Has(l) && (o.downgradedAt == 0 || m.w.now-o.downgradedAt > 30_000) {
			m.w.fatalf("member %d writes entry %d, which activates level %d, but member %d supports %v", m.id, e.GetIndex(), l, o.id, o.levels)
		}
	}
}

// TestSim_Levels runs upgrades and downgrades under faults. Without the other kinds of steps of
// TestSim, all members are often of the newer version.
func TestSim_Levels(t *testing.T) {
	exhaustive.Checks(t, 5, 100)
	kinds := []stepKind{
		stepUpgrade, stepUpgrade, stepUpgrade, stepUpgrade, stepDowngrade, stepPowerLoss, stepKillLeader, stepCutOff, stepCutOneWay,
		stepCrashAtOp, stepTarget, stepEmptyDir, stepHandOver, stepCheckpoint, stepStop,
	}
	var all simStats
	rapid.Check(t, func(rt *rapid.T) {
		p := huntGen(kinds).Draw(rt, "plan")
		cryptotest.SetGlobalRandom(t, p.Seed)
		stats, err := simulate(p, bugNone)
		if err != nil {
			rt.Fatalf("%v\n%v", err, p)
		}
		all.add(&stats)
	})
	all.log(t)
}
