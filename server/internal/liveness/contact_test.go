package liveness

import (
	"testing"
	"time"
)

// The time in which a leader did not confirm that it hears this server counts after that leader is
// lost. It used to begin again: a server that nobody heard kept its clients for up to twice
// syncLimit ticks, and their sessions expired (whole servers, seed 500000984).
func TestLast(t *testing.T) {
	c, begin := Contact{Tick: time.Second}, time.Unix(1_000_000_000, 0)
	at := func(seconds int) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }
	for _, step := range []struct {
		what      string
		known     bool
		since     int
		confirmed int
		want      int
	}{
		{"no leader from the start", false, 1, 0, 1},
		{"a leader", true, 3, 0, 3},
		{"it confirms", true, 3, 5, 5},
		{"it is lost at once", false, 6, 5, 6},
		{"another one, which never confirms", true, 8, 5, 8},
		{"it is lost", false, 12, 5, 8},
		{"still", false, 12, 5, 8},
		{"a new one", true, 20, 5, 20},
	} {
		if got := c.Last(false, step.known, at(step.since), at(step.confirmed), at(step.since)); !got.Equal(at(step.want)) {
			t.Errorf("%s: %v, want %ds", step.what, got.Sub(begin), step.want)
		}
	}
	if got := c.Last(true, true, at(21), at(5), at(25)); !got.Equal(at(25)) {
		t.Errorf("leading: %v, want 25s", got.Sub(begin))
	}
	if got := c.Last(false, false, at(30), at(5), at(31)); !got.Equal(at(30)) {
		t.Errorf("after leading: %v", got.Sub(begin))
	}
}
