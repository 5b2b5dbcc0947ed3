// Not under the race detector, which finds in go-zookeeper that sendSetWatches reads the last zxid
// while the receiver of the new connection writes it. make exhaustive runs these tests.

//go:build linux && !race

package jepsenlite

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/internal/testkit/must"
)

// A real gozkd under load keeps every promise when it is killed again and again with kill -9. make
// killtest does the same for longer.
func TestRun_KillBurst(t *testing.T) {
	kills := exhaustive.Or(3, 20)
	report := runAlone(t, Options{
		Round: exhaustive.Or(3*time.Second, 20*time.Second), Kills: kills, Faults: []string{KillBurst},
	})
	if report.bursts() < kills || report.Operations["create"] < 100*kills || report.Operations["setData"] < 100*kills {
		t.Errorf("that was no load: %d kills, %v", report.bursts(), report.Operations)
	}
}

// A lone gozkd with sessions of 2 to 10 s is stopped for up to 14 s. No session expires for the
// time of the pause, and those whose clients are gone have expired 16 s after the load.
func TestRun_PauseAlone(t *testing.T) {
	exhaustive.Only(t) // a pause must outlast the sessions
	report := runAlone(t, Options{Round: time.Minute, Faults: []string{"pause-all"}})
	if n := report.Faults["pause-all"]; n < 3 || report.LongestGap < 2*shortTimeout || report.Operations["setData"] < 1000*n {
		t.Errorf("that was no load: %d pauses, no write for %v, %v", n, report.LongestGap, report.Operations)
	}
}

// runAlone runs a lone gozkd and reports its anomalies as errors.
func runAlone(t *testing.T, o Options) *Report {
	t.Helper()
	o.Product, o.Members, o.Dir = findGozkd(t), 1, t.ArtifactDir()
	o.Seed, o.Pace, o.Tick = rand.Uint64(), 2*time.Millisecond, 500*time.Millisecond
	o.Logger = hclog.New(&hclog.LoggerOptions{Output: t.Output()})
	report, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	report.Print(t.Output())
	for _, a := range report.Anomalies {
		t.Error(a)
	}
	return report
}

func findGozkd(t *testing.T) Product {
	t.Helper()
	return Find(t.Context(), Gozkd, "", t.ArtifactDir())
}

// Faults that overlap heal without waiting for a server that the other fault has stopped, and no
// pause is noted for time in which a server ran.
func TestNemesis_BurstAndPauseOverlap(t *testing.T) {
	cluster := NewCluster(ClusterConfig{
		Options: Options{Product: findGozkd(t), Members: 1, Dir: t.ArtifactDir(), Tick: 500 * time.Millisecond}, Burst: true,
	})
	defer func() {
		if err := cluster.Close(); err != nil {
			t.Error(err)
		}
	}()
	n := &nemesis{
		cluster: cluster, rec: NewRecorder(), rng: rand.New(rand.NewPCG(1, 1)), counts: map[string]int{},
		log: hclog.NewNullLogger(),
	}
	inject := func(ctx context.Context, name string) healing {
		i := slices.IndexFunc(faults(), func(f fault) bool { return f.name == name })
		return n.inject(ctx, faults()[i])
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel() // bursts are short, and a heal that waits fails
	const pauses = "pause-all"
	for _, names := range [][2]string{{KillBurst, pauses}, {pauses, KillBurst}, {pauses, pauses}} {
		n.awaitServing(t.Context())
		heal := both(inject(ended, names[0]), inject(ended, names[1]))
		injected := n.rec.Now()
		if err := must.Try(func() { heal(ended) }); err != nil {
			t.Errorf("%v: %v", names, err)
		}
		history := n.rec.Take()
		if len(history) != 1 || history[0].Kind != KindPause {
			t.Fatalf("%v: %d records, want one pause", names, len(history))
		}
		if stopped := names[1] == pauses; history[0].Return > injected != stopped {
			t.Errorf("%v: paused until %v; both were injected at %v", names, history[0].Return, injected)
		}
	}
}
