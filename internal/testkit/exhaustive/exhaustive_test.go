package exhaustive_test

import (
	"flag"
	"testing"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
)

func TestChecks(t *testing.T) {
	before := flag.Lookup("rapid.checks").Value.String()
	for _, c := range []struct {
		variable string
		want     int
	}{{"", 3}, {"1", 7}} {
		t.Run("GOZKD_EXHAUSTIVE="+c.variable, func(t *testing.T) {
			t.Setenv("GOZKD_EXHAUSTIVE", c.variable)
			exhaustive.Checks(t, 3, 7)
			runs := 0
			rapid.Check(t, func(*rapid.T) { runs++ })
			if runs != c.want || exhaustive.Or(3, 7) != c.want || exhaustive.Enabled() != (c.want == 7) {
				t.Errorf("%d runs, want %d; Or returns %d", runs, c.want, exhaustive.Or(3, 7))
			}
		})
	}
	if after := flag.Lookup("rapid.checks").Value.String(); after != before {
		t.Errorf("-rapid.checks is %s after the tests, want %s", after, before)
	}
}

func TestOnly(t *testing.T) {
	for variable, want := range map[string]bool{"": true, "1": false} {
		t.Setenv("GOZKD_EXHAUSTIVE", variable)
		skipped := false
		t.Run("GOZKD_EXHAUSTIVE="+variable, func(t *testing.T) {
			defer func() { skipped = t.Skipped() }()
			exhaustive.Only(t)
		})
		if skipped != want {
			t.Errorf("GOZKD_EXHAUSTIVE=%q: skipped: %t, want %t", variable, skipped, want)
		}
	}
}
