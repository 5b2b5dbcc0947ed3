//go:build linux

package jepsenlite

import (
	"strings"
	"testing"
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
