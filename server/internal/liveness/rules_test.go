package liveness

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/proto"
)

const (
	second  = time.Second
	timeout = 10 * second
)

// A session at another member that says nothing lasts for its timeout and a tick, from when the
// state was restored, and the time in which this server heard nobody does not count.
func TestExpired_SilentMember(t *testing.T) {
	for what, tc := range map[string]struct {
		do   func(e *Expiry)
		lost time.Duration
	}{
		"restored": {func(*Expiry) {}, 0},
		"paused":   {func(e *Expiry) { e.GiveBack(3*second, begin.Add(5*second)) }, 3 * second},
	} {
		e := NewExpiry(1, second)
		e.Adopt(maps.All(map[proto.SessionID]time.Duration{7: timeout}), begin)
		tc.do(e)
		over := begin.Add(timeout + tc.lost)
		if due := e.Due(over.Add(-1)); len(due) != 0 {
			t.Errorf("%s: %v are due before the timeout", what, due)
		}
		if next := e.Expiries(); len(next) != 1 || !slices.Equal(next[0].IDs, []proto.SessionID{7}) || next[0].At.Before(over) {
			t.Errorf("%s: expiries are %v", what, next)
		}
		find := func(proto.SessionID) (uint8, time.Duration, bool) { return 2, timeout, true }
		for at, want := range map[time.Duration]int{second: 0, second + 1: 1} {
			if ids := e.Expired(over.Add(at), find); len(ids) != want || !slices.Equal(e.Due(over.Add(at)), []proto.SessionID{7}) {
				t.Errorf("%s: %v have expired %v after the timeout", what, ids, at)
			}
			e.tracker.Retry(7)
		}
	}
}

// A client that comes back has its new timeout from then on.
func TestLocals_ClaimBeginsTheTimeout(t *testing.T) {
	heard := begin
	l := NewLocals(second, func(int, time.Time) time.Time { return heard })
	l.Add(1, Local[int]{Conn: 1, TimeoutMs: 10_000}, begin)
	if s, known := l.Get(1); !known || s.Conn != 1 {
		t.Errorf("session 1 is %+v, %v", s, known)
	}
	if s, known := l.Get(2); known {
		t.Errorf("an unknown session is %+v", s)
	}
	if l.Release(1, 2, begin) || !l.Release(1, 1, begin) || l.Release(1, 1, begin) {
		t.Error("Release does not say whether the connection was the session's")
	}
	if v, _ := l.Claim(1, make([]byte, proto.PasswdBytes), 3, 20_000, begin.Add(8*second)); v != Right {
		t.Fatalf("the claim is %v", v)
	}
	if ended := l.Expire(begin.Add(27 * second)); len(ended) != 0 {
		t.Errorf("%v ended before the new timeout", ended)
	}
	l.GiveBack(5*second, begin.Add(27*second))
	if ended := l.Expire(begin.Add(32 * second)); len(ended) != 0 {
		t.Errorf("%v ended although lost time does not count", ended)
	}
	l.Upgrade(1, 3)
	l.Expire(begin.Add(time.Hour))
	if next := l.Expiries(); len(next) != 1 || !slices.Equal(next[0].IDs, []proto.SessionID{1}) {
		t.Errorf("while the session is upgraded, expiries are %v", next)
	}
	if ended := l.Clear(); !slices.Equal(ended, []proto.SessionID{1}) || l.Len() != 0 {
		t.Errorf("ended are %v", ended)
	}
}

// A pass that is late by at most a quarter of the interval is in time.
func TestPasses_Late(t *testing.T) {
	p, now := NewPasses(4*second, 0, begin), begin
	for i, tc := range []struct {
		after, lost time.Duration
		judges      bool
	}{
		{4 * second, 0, true}, {5 * second, 0, true}, {5*second + 1, second + 1, false}, {9 * second, 5 * second, true}, {4 * second, 0, true},
	} {
		now = now.Add(tc.after)
		if lost, judges := p.Next(now); lost != tc.lost || judges != tc.judges {
			t.Errorf("pass %d is late by %v and judges: %v; want %v, %v", i, lost, judges, tc.lost, tc.judges)
		}
	}
}

// When requests are committed again, the time since the last jump of the clock counts for no
// session: once, and not that before the jump.
func TestResetAll_AfterJumps(t *testing.T) {
	e, now := NewExpiry(1, second), begin
	e.ResetAll(now)
	e.Attached(1, timeout, true, now)
	for range 2 {
		e.Jump(func() (time.Time, time.Time, []int64) { return now, now.Add(second), nil })
		now = now.Add(3 * second)
		e.ResetAll(now)
		e.ResetAll(now)
	}
	due := begin.Add(timeout + 4*second)
	if early, late := e.Due(due.Add(-time.Millisecond)), e.Due(due.Add(second)); len(early) > 0 || len(late) != 1 {
		t.Errorf("due are %v in the last moment, and %v afterwards", early, late)
	}
}

// After a jump of the clock by its timeout a silent session is due, however late passes are before
// and after the jump, and also if nothing could be committed meanwhile.
func TestGiveBack_AroundAJump(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(what string) time.Duration {
			return time.Duration(rapid.Int64Range(0, int64(timeout)).Draw(t, what))
		}
		e, now := NewExpiry(1, second), begin.Add(draw("silence"))
		e.ResetAll(begin)
		l := NewLocals(second, func(int, time.Time) time.Time { return begin })
		e.Attached(1, timeout, true, now)
		l.Add(1, Local[int]{TimeoutMs: 10_000}, now)
		pass := begin
		late := func() { // the time since the last pass is lost
			lost := now.Sub(pass)
			pass = now
			e.GiveBack(lost, now)
			l.GiveBack(lost, now)
		}
		counted := now.After(begin) // that no server has reported
		if rapid.Bool().Draw(t, "a pass before") {
			now = now.Add(draw("before"))
			late()
			counted = false
		}
		e.Jump(func() (time.Time, time.Time, []int64) { return now, now.Add(timeout), nil })
		l.Jump(func() (time.Time, []int64) { return now.Add(timeout), []int64{} })
		now, pass = now.Add(timeout), pass.Add(timeout) // passes go by a clock that does not jump
		for range rapid.IntRange(0, 3).Draw(t, "passes") {
			now = now.Add(draw("after"))
			late()
			if rapid.Bool().Draw(t, "commits again") {
				e.ResetAll(now)
				counted = false
			}
		}
		if due := e.Due(now); len(due) != 1 {
			t.Fatalf("%v of the sessions of all servers are due", due)
		}
		ofSilentServer := func(proto.SessionID) (uint8, time.Duration, bool) { return 2, timeout, true }
		if expired := e.Expired(now.Add(second), ofSilentServer); counted && len(expired) != 1 {
			t.Fatalf("%v of the sessions of a server without reports have expired", expired)
		}
		if next := l.Expiries(); next[0].At.After(now.Add(second)) {
			t.Fatalf("the local session is due %v from now", next[0].At.Sub(now))
		}
	})
}

// A pass that read the clock before it jumped, and gives lost time back after that, takes no time
// from sessions that were heard since the jump, nor from servers that reported since.
func TestGiveBack_TimeFromBeforeAJump(t *testing.T) {
	const jump = time.Hour
	now := begin.Add(jump)
	e, l := NewExpiry(1, second), NewLocals(second, func(_ int, now time.Time) time.Time { return begin })
	e.ResetAll(begin)
	for id := proto.SessionID(1); id <= 2; id++ {
		e.Attached(id, timeout, true, begin)
	}
	l.Add(1, Local[int]{TimeoutMs: 10_000, Conn: 1}, begin)
	e.Jump(func() (time.Time, time.Time, []int64) { return begin, now, []int64{1} })
	l.Jump(func() (time.Time, []int64) { return now, nil })
	e.Reported(2, Report{Arrived: now, MadeAfter: begin}, nil)
	e.GiveBack(second, begin)
	l.GiveBack(second, begin)
	if due := e.Due(now.Add(timeout - 1)); len(due) != 1 || due[0] != 2 {
		t.Errorf("%v are due, want only 2, whose client was not heard", due)
	}
	at := now.Add(timeout + second/2) // silence is certain a tick later
	find := func(id proto.SessionID) (uint8, time.Duration, bool) { return 2, timeout, id == 2 }
	if over := e.Expired(at, find); len(over) > 0 {
		t.Errorf("%v expire, whose server reported at the time of the jump", over)
	}
	if next := l.Expiries(); len(next) != 1 || next[0].At.Before(now.Add(timeout)) {
		t.Errorf("the local sessions expire at %v, want at %v", next, now.Add(timeout))
	}
}

// Jumped adds up the jumps after a time, of which it remembers the last ones.
func TestJumped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, now, since := NewExpiry(1, second), begin, begin
		want := time.Duration(0)
		before := rapid.IntRange(0, 2*maxJumps).Draw(t, "jumps before")
		jumps := before + rapid.IntRange(0, maxJumps).Draw(t, "jumps after")
		for i := range jumps {
			if i == before {
				since, want = now, 0
			}
			now = now.Add(time.Millisecond)
			by := time.Duration(1 + i)
			e.Jump(func() (_, _ time.Time, _ []int64) { return now, now.Add(by), nil })
			now, want = now.Add(by), want+by
		}
		if jumps == before {
			since, want = now, 0
		}
		if got := e.Jumped(since); got != want {
			t.Fatalf("the clock has jumped by %v, want %v", got, want)
		}
		if len(e.jumps) > maxJumps {
			t.Fatalf("%d jumps are remembered", len(e.jumps))
		}
	})
}
