package standstill_test

import (
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/standstill"
)

// A standstill is noticed by whoever comes first after it, counts for as long as the caller says,
// and only the part of it that lies in the caller's time is lost.
func TestWatch(t *testing.T) {
	start := time.Now()
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	for name, first := range map[string]func(*standstill.Watch){
		"noted": func(w *standstill.Watch) { w.Note(at(9000)) },
		"asked": func(*standstill.Watch) {},
	} {
		t.Run(name, func(t *testing.T) {
			w := standstill.New(time.Second)
			for _, ms := range []int{-600_000, -60_000, -1} { // nobody notes yet
				if w.Recent(at(ms), time.Hour) || w.Lost(at(-600_000), at(ms)) != 0 {
					t.Error("a standstill before the first note")
				}
			}
			for ms := 0; ms <= 1000; ms += 500 {
				w.Note(at(ms))
			}
			if w.Recent(at(2000), time.Hour) || w.Lost(at(0), at(2000)) != 0 {
				t.Error("a standstill, and the process ran")
			}
			first(w) // the process stood still from 2,000 on
			for _, c := range []struct {
				since int
				lost  time.Duration
			}{{0, 7 * time.Second}, {2000, 7 * time.Second}, {5000, 4 * time.Second}, {9000, 0}, {9500, 0}} {
				if lost := w.Lost(at(c.since), at(9000)); lost != c.lost || w.Elapsed(at(c.since), at(9000)) != at(9000).Sub(at(c.since))-lost {
					t.Errorf("since %d ms, %v are lost, want %v", c.since, lost, c.lost)
				}
			}
			if !w.Recent(at(9900), time.Second) || w.Recent(at(10_000), time.Second) {
				t.Error("a standstill is not recent for one second")
			}
			w.Note(at(8000)) // somebody who took the time before
			if w.Lost(at(0), at(10_500)) != 7*time.Second {
				t.Error("a late caller made a standstill")
			}
		})
	}
}
