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
		if step.confirmed > 0 {
			c.Answered(0, 0, false, at(step.confirmed))
		}
		if got := c.Last(false, step.known, at(step.since), at(step.since)); !got.Equal(at(step.want)) {
			t.Errorf("%s: %v, want %ds", step.what, got.Sub(begin), step.want)
		}
	}
	if got := c.Last(true, true, at(21), at(25)); !got.Equal(at(25)) {
		t.Errorf("leading: %v, want 25s", got.Sub(begin))
	}
	if got := c.Last(false, false, at(30), at(31)); !got.Equal(at(30)) {
		t.Errorf("after leading: %v", got.Sub(begin))
	}
}

// A report names what was heard a tick before the last report that has arrived, and later. The time
// that the leader's answer names is repeated to that leader only.
func TestNextReport(t *testing.T) {
	c, mono, wall := Contact{Tick: 2 * time.Second}, time.Unix(1_000_000, 0), time.Unix(2_000_000, 0)
	const first, second, unknown = 3, 4, 0 // terms
	never := time.Duration(-1)
	for _, step := range []struct {
		what     string
		at       time.Duration
		answered time.Duration // never: no answer came since the last step
		names    uint64        // the time in the answer; 0: none
		leader   uint64
		after    time.Duration // never: the report names every session
		repeats  uint64
	}{
		{"the first report", 1 * time.Second, never, 0, first, never, 0},
		{"no answer", 2 * time.Second, never, 0, first, never, 0},
		{"an answer", 5 * time.Second, 3 * time.Second, 7, first, 0, 7},
		{"the next is lost", 6 * time.Second, never, 0, first, 0, 7},
		{"an answer without a time", 8 * time.Second, 7 * time.Second, 0, first, 4 * time.Second, 7},
		{"another leader", 90 * time.Second, never, 0, second, 4 * time.Second, 0},
		{"it answers", 92 * time.Second, 91 * time.Second, 9, second, 88 * time.Second, 9},
		{"a leader whose term is not known", 94 * time.Second, 93 * time.Second, 5, unknown, 90 * time.Second, 0},
		{"the same as before", 96 * time.Second, never, 0, second, 90 * time.Second, 9},
	} {
		if step.answered != never {
			c.Answered(step.leader, step.names, step.names > 0, mono.Add(step.answered))
		}
		after, repeats := c.NextReport(step.leader, wall.Add(step.at))
		want := time.Time{}
		if step.after != never {
			want = wall.Add(step.after)
		}
		if !after.Equal(want) || repeats != step.repeats {
			t.Errorf("%s: after %v, repeats %d, want %v and %d", step.what, after, repeats, want, step.repeats)
		}
	}
}
