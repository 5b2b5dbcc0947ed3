//go:build linux

package jepsenlite

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
)

// A real gozkd keeps every promise while kill -9 ends it again and again under load. make killtest
// does the same for longer.
func TestRun_KillBurst(t *testing.T) {
	dir, kills := t.ArtifactDir(), exhaustive.Or(3, 20)
	product, err := Find(t.Context(), Gozkd, "", dir)
	if err != nil {
		t.Fatal(err)
	}
	report, err := Run(t.Context(), Options{
		Product: product, Members: 1, Dir: dir, Round: exhaustive.Or(3*time.Second, 20*time.Second), Kills: kills,
		Seed: rand.Uint64(), Faults: []string{KillBurst}, Pace: 2 * time.Millisecond, Tick: 500 * time.Millisecond,
		Logger: hclog.New(&hclog.LoggerOptions{Output: t.Output()}),
	})
	if err != nil {
		t.Fatal(err)
	}
	report.Print(t.Output())
	for _, a := range report.Anomalies {
		t.Error(a)
	}
	if report.bursts() < kills || report.Operations["create"] < 10*kills || report.Operations["setData"] < 10*kills {
		t.Errorf("that was no load: %d kills, %v", report.bursts(), report.Operations)
	}
}
