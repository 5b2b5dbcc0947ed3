//go:build linux

package jepsenlite

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
)

// Kills that no fault counts would never end a run, and a burst is a fault of a lone server.
func TestChooseFaults_KillBurst(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Members: 1, Kills: 3, Faults: []string{KillBurst, "pause-all"}}, ""},
		{Options{Members: 1, Kills: 3, Faults: []string{"pause-all"}}, "not among the faults"},
		{Options{Members: 3, Faults: []string{KillBurst}}, "lone server"},
		{Options{Members: 3, Kills: 3, Faults: []string{"kill"}}, "not among the faults"},
	} {
		_, err := chooseFaults(c.o)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%d members, %v, %d kills: error %v, want %q", c.o.Members, c.o.Faults, c.o.Kills, err, c.want)
		}
	}
}

// Members whose disks are full serve again by themselves when there is room. Their disks need root.
func TestRun_DiskFull(t *testing.T) {
	if os.Getuid() != 0 || testing.Short() {
		t.Skip("mounts a small disk, and takes 15 s")
	}
	dir := t.TempDir()
	report, err := Run(t.Context(), Options{
		Product: Find(t.Context(), Gozkd, "", dir), Members: 3, Dir: dir, Round: 6 * time.Second, Seed: 1,
		Faults: []string{"disk-full"}, Pace: 20 * time.Millisecond, Tick: 500 * time.Millisecond, Logger: hclog.NewNullLogger(),
	})
	if err != nil || report.Failed() || report.Faults["disk-full"] == 0 {
		t.Errorf("%+v, %v", report, err)
	}
}
