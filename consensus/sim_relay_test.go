package consensus

import (
	"testing"
	"testing/cryptotest"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
)

// countEntries counts the entries of a message to a learner.
func (m *simMember) countEntries(r *raftpb.Message) {
	switch n := len(r.GetEntries()); {
	case r.GetType() != raftpb.MsgApp || !contains(m.core.Conf().GetLearners(), m.id):
	case len(r.GetContext()) > 0:
		m.w.stats.relayedEntries += n
	default:
		m.w.stats.unrelayedEntries += n
	}
}

// TestSim_Relayed runs ensembles whose learners ask voters for entries, with all faults.
func TestSim_Relayed(t *testing.T) {
	plans := huntGen(stepWeights)
	var all simStats
	for seed := range exhaustive.Or(2, 100) {
		p := plans.Example(seed)
		p.Members, p.Learners, p.Relayed, p.StartMs = 5, 2, true, []int{0, 0, 0, 0, 0}
		if p.Levels != nil {
			p.Levels = []int{1, 1, 1, 1, 2}
		}
		cryptotest.SetGlobalRandom(t, p.Seed)
		stats, err := simulate(p, bugNone)
		if err != nil {
			t.Fatalf("plan %d: %v\n%v", seed, err, p)
		}
		all.add(&stats)
	}
	all.log(t)
	if all.relayedEntries == 0 {
		t.Error("no entry was relayed")
	}
}

// TestSim_RelaysSpareTheLeader counts the entries that a leader sends to many learners while
// members are killed.
func TestSim_RelaysSpareTheLeader(t *testing.T) {
	voters, learners := 3, exhaustive.Or(8, 50)
	p := plan{Seed: 1, Members: voters + learners, Learners: learners, Relayed: true, StartMs: make([]int, voters+learners), Rate: 5}
	for i := range 3 {
		p.Steps = append(p.Steps, step{GapMs: 4000, Kind: stepKill, Member: i % voters, ForMs: 1000}, step{GapMs: 1000, Kind: stepKill, Member: voters + i, ForMs: 1000})
	}
	cryptotest.SetGlobalRandom(t, p.Seed)
	stats, err := simulate(p, bugNone)
	if err != nil {
		t.Fatal(err)
	}
	stats.log(t)
	if stats.relayedEntries < 5*stats.unrelayedEntries {
		t.Errorf("%d entries were relayed to learners, the leader sent %d", stats.relayedEntries, stats.unrelayedEntries)
	}
}
