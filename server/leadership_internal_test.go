package server

import (
	"testing"
	"time"

	"github.com/gozkd/gozkd/consensus"
)

// The time in which a leader did not confirm that it hears this server counts after that leader is
// lost. It used to begin again: a server that nobody heard kept its clients for up to twice
// syncLimit ticks, and their sessions expired (whole servers, seed 500000984).
func TestLastInTouch(t *testing.T) {
	s, err := New(Config{Tick: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	s.startedMono = begin
	at := func(seconds int) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }
	for _, step := range []struct {
		what      string
		leader    uint64
		since     int // of the status
		confirmed int
		want      int
	}{
		{"no leader from the start", 0, 1, 0, 1},
		{"a leader", 2, 3, 0, 3},
		{"it confirms", 2, 3, 5, 5},
		{"it is lost at once", 0, 6, 5, 6},
		{"another one, which never confirms", 3, 8, 5, 8},
		{"it is lost", 0, 12, 5, 8},
		{"still", 0, 12, 5, 8},
		{"a new one", 2, 20, 5, 20},
	} {
		s.leader.confirmed.Store(int64(at(step.confirmed).Sub(begin)))
		if got := s.lastInTouch(consensus.Status{Leader: step.leader, Since: at(step.since)}); !got.Equal(at(step.want)) {
			t.Errorf("%s: %v, want %ds", step.what, got.Sub(begin), step.want)
		}
	}
	if got := s.lastInTouch(consensus.Status{Leader: 1, Leading: true, Since: at(21)}); time.Since(got) > time.Minute {
		t.Errorf("leading: %v ago", time.Since(got))
	}
	if got := s.lastInTouch(consensus.Status{Since: at(30)}); !got.Equal(at(30)) {
		t.Errorf("after leading: %v", got.Sub(begin))
	}
}
