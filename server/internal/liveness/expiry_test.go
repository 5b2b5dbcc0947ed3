package liveness

import (
	"maps"
	"testing"
	"time"

	"github.com/gozkd/gozkd/proto"
)

// A member's process ends before it has reported that it heard a client, and its next process,
// which knows nothing of that, makes reports at once. The session lasts for its timeout from when
// the ended process can have heard the client. Further processes, which the client does not reach,
// change nothing.
func TestReported_OfAnotherProcess(t *testing.T) {
	const tick, timeout = 2 * time.Second, 30 * time.Second
	e, start := NewExpiry(1, tick), time.Unix(1_000_000_000, 0)
	sessions := maps.All(map[proto.SessionID]time.Duration{1: timeout})
	e.Attached(1, timeout, true, start)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	for _, process := range []struct{ from, until int }{{0, 10}, {20, 29}, {30, 39}, {40, 50}} {
		for seconds := process.from; seconds < process.until; seconds++ {
			r := Report{Arrived: at(seconds), MadeAfter: at(seconds - 1)}
			if r.FirstOfProcess = seconds < process.from+2; r.FirstOfProcess { // the answer to the first report is lost
				r.MadeAfter = start
			}
			e.Reported(2, r, sessions)
			const lastHeard = 9 + 2 // a tick after the last report of the first process
			if want := seconds-1 >= lastHeard+30 && !r.FirstOfProcess; e.silenceKnown(1, 2, timeout, at(seconds)) != want {
				t.Errorf("after %d s the silence of the session is known: %v, want %v", seconds, !want, want)
			}
		}
	}
}

// A client that connects on both sides of a jump of the clock counts as heard after the jump.
func TestAttached_DuringAJump(t *testing.T) {
	const timeout = 10 * time.Second
	e, start := NewExpiry(1, time.Second), time.Unix(1_000_000_000, 0)
	e.Attached(1, timeout, true, start)
	e.Attached(2, timeout, true, start)
	jumped := start.Add(time.Hour)
	e.Jump(func() (time.Time, time.Time, []int64) { return start, jumped, []int64{1} })
	e.Attached(3, timeout, true, start)
	for id, want := range map[proto.SessionID]bool{1: false, 2: true, 3: false} {
		if got := e.tracker.Silent(id, jumped); got != want {
			t.Errorf("session %d is silent after the jump: %v", id, got)
		}
	}
}

// After a start, and when this server begins to lead, each session of the restored state has its
// full timeout, and no session of an earlier state is left.
func TestAdopt_FullTimeouts(t *testing.T) {
	const tick = time.Second
	e, start := NewExpiry(1, tick), time.Unix(1_000_000_000, 0)
	e.Attached(9, tick, true, start)
	timeouts := []time.Duration{2 * tick, 5 * tick, 30 * tick} // of sessions 0, 1 and 2
	find := func(id proto.SessionID) (uint8, time.Duration, bool) { return 1, timeouts[id], true }
	e.Adopt(func(yield func(proto.SessionID, time.Duration) bool) {
		for id, timeout := range timeouts {
			if !yield(proto.SessionID(id), timeout) {
				return
			}
		}
	}, start)
	for _, from := range []time.Time{start, start.Add(time.Hour)} {
		if from != start {
			e.Lead(true, start, from)
		}
		for id, timeout := range timeouts {
			if early := e.Expired(from.Add(timeout), find); len(early) > 0 {
				t.Errorf("after %v: %v expire", timeout, early)
			}
			if got := e.Expired(from.Add(timeout+tick), find); len(got) != 1 || got[0] != proto.SessionID(id) {
				t.Errorf("after %v and a tick: %v expire, want %d", timeout, got, id)
			}
		}
	}
}
