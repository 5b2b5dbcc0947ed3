package server_test

import (
	"os"
	"testing"
	"time"
)

// Each transition of an ensemble is logged once, however long a state lasts.
func TestTransitions_OncePerChange(t *testing.T) {
	withObserver(t, func(t *testing.T, e *ensemble) {
		leader := e.settled()
		said := make(map[string]int) // times, at the last look
		expect := func(when string, lines map[string]int) {
			t.Helper()
			for line, more := range lines {
				if n := e.said.Count(line) - said[line]; n != more {
					t.Errorf("%s: %q is said %d times, want %d", when, line, n, more)
				}
			}
			for line := range lines {
				said[line] = e.said.Count(line)
			}
		}
		expect("start", map[string]int{
			": joining the ensemble: ": 4, ": role: mode=leader ": 1, ": role: mode=follower ": 2, ": role: mode=observer ": 1,
			": a server does not answer: ": 0,
		})

		e.m(leader).kill()
		next := e.leader()
		time.Sleep(30 * time.Second)
		expect("leader killed", map[string]int{
			": the leader is gone or silent: there is a new election: ": 3, ": role: mode=leader ": 1, ": role: mode=follower ": 1,
			": role: mode=observer ": 1, " epoch=0x2 ": 3, ": a server does not answer: ": 1, ": not serving clients yet": 0,
		})

		e.start(leader)
		time.Sleep(30 * time.Second)
		expect("back", map[string]int{": a server is in step: ": 1, ": role: mode=follower ": 1, ": a server does not answer: ": 0})

		other := 6 - leader - next
		e.m(other).kill()
		e.m(leader).kill()
		time.Sleep(30 * time.Second)
		expect("no quorum", map[string]int{
			": quorum lost: too few voters answer, so this server leads no longer: ": 1, ": no leader for syncLimit ticks: ": 2,
		})

		said[": a server does not answer: "] = e.said.Count(": a server does not answer: ") // depends on when they were looked at
		e.start(other)
		time.Sleep(30 * time.Second)
		expect("quorum again", map[string]int{": serving clients again: ": 2, ": role: mode=leader ": 1, ": a server does not answer: ": 1})
	})
}

// A member that returns without its data is logged on both sides, once.
func TestTransitions_WithoutData(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.onDisk()
		e.startAll()
		member := e.followers()[0]
		e.m(member).kill()
		e.m(member).ending.Wait()
		if err := os.RemoveAll(e.m(member).dir); err != nil {
			t.Fatal(err)
		}
		before := e.said.Count(": no data yet: ")
		e.start(member)
		time.Sleep(time.Minute)
		for line, want := range map[string]int{
			": a voter comes without data, new or lost: ": 1, ": let in by the ensemble: ": 1, ": no data yet: ": before + 1,
			": sending a checkpoint: ": 1, ": receiving a checkpoint: ": 1, ": installed a checkpoint: ": 1,
		} {
			if n := e.said.Count(line); n != want {
				t.Errorf("%q is said %d times, want %d", line, n, want)
			}
		}
	})
}

// A member that waits for others at the start logs the reason, less and less often.
func TestTransitions_Waiting(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		served := e.m(1).begin(e.lines())
		time.Sleep(36 * time.Second) // after 5, 15 and 35
		if n := e.said.Count(": not serving clients yet: no data here"); n != 3 {
			t.Errorf("said %d times", n)
		}
		e.start(2, 3)
		if err := served(); err != nil {
			t.Fatal(err)
		}
	})
}
