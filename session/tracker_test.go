package session_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/session"
	"pgregory.net/rapid"
)

const tick = 2 * time.Second

var start = time.Date(2026, 11, 20, 19, 48, 9, 123456789, time.UTC)

// TestExpired_Bounds pins the instant: (floor((now+timeout)/tick)+1)*tick of Unix time.
func TestExpired_Bounds(t *testing.T) {
	for _, tc := range []struct{ now, timeout, dies time.Duration }{
		{0, 4 * time.Second, 6 * time.Second},
		{time.Nanosecond, 4 * time.Second, 6 * time.Second},
		{2*time.Second - 1, 4 * time.Second, 6 * time.Second},
		{2 * time.Second, 4 * time.Second, 8 * time.Second},
		{time.Second, 5 * time.Second, 8 * time.Second},
		{time.Second, 4999 * time.Millisecond, 6 * time.Second},
	} {
		at := func(d time.Duration) time.Time { return time.Unix(1_000_000_000, 0).Add(d) }
		tr := session.New(tick)
		tr.Add(1, tc.timeout, at(tc.now))
		if got := tr.Buckets(); len(got) != 1 || !got[0].At.Equal(at(tc.dies)) {
			t.Errorf("heard at %v, timeout %v: buckets %v, want one at %v", tc.now, tc.timeout, got, at(tc.dies))
		}
		if got := tr.Expired(at(tc.dies - 1)); len(got) != 0 {
			t.Errorf("heard at %v, timeout %v: expired before %v", tc.now, tc.timeout, tc.dies)
		}
		if got := tr.Expired(at(tc.dies)); !slices.Equal(got, []proto.SessionID{1}) {
			t.Errorf("heard at %v, timeout %v: not expired at %v", tc.now, tc.timeout, tc.dies)
		}
	}
}

func TestTouch_OlderNewsChangesNothing(t *testing.T) {
	tr := session.New(tick)
	tr.Add(1, 4*time.Second, start)
	want := tr.Buckets()
	if !tr.Touch(1, start.Add(-time.Hour)) {
		t.Fatal("the session is not known")
	}
	if got := tr.Buckets(); !got[0].At.Equal(want[0].At) {
		t.Fatalf("moved from %v to %v", want, got)
	}
	if got := tr.Expired(start.Add(time.Hour)); len(got) != 1 {
		t.Fatalf("expired %v, want the session", got)
	}
	tr.Touch(1, start)
	if got := tr.Expired(start.Add(time.Hour)); len(got) != 0 {
		t.Fatalf("expired %v: an old report put back a closing session", got)
	}
}

func TestExpired_ReturnsAgainOnlyAfterRetry(t *testing.T) {
	tr := session.New(tick)
	for id := proto.SessionID(5); id > 0; id-- {
		tr.Add(id, 4*time.Second, start)
	}
	end := start.Add(7 * time.Second)
	if got := tr.Expired(end); !slices.Equal(got, []proto.SessionID{1, 2, 3, 4, 5}) {
		t.Fatalf("expired %v, want 1 to 5 in order", got)
	}
	if got := tr.Expired(end); got != nil {
		t.Fatalf("expired %v again", got)
	}
	tr.Retry(3)
	tr.Retry(3)
	tr.Retry(99)
	tr.SetTimeout(4, 2*time.Second, end)
	tr.Remove(5)
	if got := tr.Expired(end); !slices.Equal(got, []proto.SessionID{3}) {
		t.Fatalf("expired %v, want 3 alone", got)
	}
	if tr.Touch(5, end) || tr.SetTimeout(5, time.Second, end) {
		t.Fatal("a removed session is still known")
	}
	if got := tr.Expired(end.Add(4 * time.Second)); !slices.Equal(got, []proto.SessionID{4}) {
		t.Fatalf("expired %v, want 4 alone", got)
	}
	tr.ResetAll(end)
	if got := tr.Expired(end.Add(4 * time.Second)); !slices.Equal(got, []proto.SessionID{4}) {
		t.Fatalf("expired %v, want 4 alone: its timeout is 2s", got)
	}
	if got := tr.Expired(end.Add(6 * time.Second)); !slices.Equal(got, []proto.SessionID{1, 2, 3}) {
		t.Fatalf("expired %v, want the closing sessions", got)
	}
}

// TestTracker_KeepsTheMonotonicReading guards E1 against steps of the wall clock. Round(0) strips a
// monotonic reading.
func TestTracker_KeepsTheMonotonicReading(t *testing.T) {
	now := time.Now()
	tr := session.New(tick)
	tr.Add(1, 4*time.Second, now)
	if at := tr.Buckets()[0].At; at == at.Round(0) {
		t.Fatal("the bucket's instant has lost the monotonic reading, so time is compared by the wall clock")
	}
}

// alive is the model of one session. The two bounds alone decide when it may and must expire.
type alive struct {
	timeout time.Duration
	heard   time.Time
	closing bool
	retried bool
}

func TestTracker_NeverEarlyNeverLaterThanOneTick(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tick := time.Duration(rapid.Int64Range(1, 3000).Draw(t, "tick_ms")) * time.Millisecond
		tr, model, now := session.New(tick), make(map[proto.SessionID]*alive), start
		ids := rapid.Map(rapid.Int64Range(1, 6), func(n int64) proto.SessionID { return proto.SessionID(n) })
		timeouts := rapid.Map(rapid.Int64Range(1, 10_000), func(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond })
		// The time of a report: now, or a little earlier.
		report := func(t *rapid.T) time.Time {
			return now.Add(-time.Duration(rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, int64(5*time.Second))).Draw(t, "ago")))
		}
		hear := func(s *alive, at time.Time) {
			if at.After(s.heard) {
				s.heard = at
			}
			s.closing, s.retried = false, false
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				id, timeout, at := ids.Draw(t, "id"), timeouts.Draw(t, "timeout"), report(t)
				tr.Add(id, timeout, at)
				if model[id] == nil {
					model[id] = &alive{heard: at}
				}
				model[id].timeout = timeout
				hear(model[id], at)
			},
			"touch": func(t *rapid.T) {
				id, at := ids.Draw(t, "id"), report(t)
				s := model[id]
				if got := tr.Touch(id, at); got != (s != nil) {
					t.Fatalf("Touch(%v) = %t", id, got)
				}
				if s != nil && at.After(s.heard) {
					hear(s, at)
				}
			},
			"setTimeout": func(t *rapid.T) {
				id, timeout, at := ids.Draw(t, "id"), timeouts.Draw(t, "timeout"), report(t)
				s := model[id]
				if got := tr.SetTimeout(id, timeout, at); got != (s != nil) {
					t.Fatalf("SetTimeout(%v) = %t", id, got)
				}
				if s != nil {
					s.timeout = timeout
					hear(s, at)
				}
			},
			"remove": func(t *rapid.T) {
				id := ids.Draw(t, "id")
				tr.Remove(id)
				delete(model, id)
			},
			"retry": func(t *rapid.T) {
				id := ids.Draw(t, "id")
				tr.Retry(id)
				if s := model[id]; s != nil && s.closing {
					s.closing, s.retried = false, true
				}
			},
			"resetAll": func(t *rapid.T) {
				tr.ResetAll(now)
				for _, s := range model {
					hear(s, now)
				}
			},
			"giveBack": func(t *rapid.T) {
				lost := time.Duration(rapid.Int64Range(0, int64(5*time.Second)).Draw(t, "lost"))
				tr.GiveBack(lost, now)
				for _, s := range model {
					at := s.heard.Add(lost)
					if at.After(now) {
						at = now
					}
					if !s.closing && at.After(s.heard) {
						hear(s, at)
					}
				}
			},
			"silent": func(t *rapid.T) {
				id, at := ids.Draw(t, "id"), report(t)
				s := model[id]
				if got := tr.Silent(id, at); got != (s != nil && at.Sub(s.heard) >= s.timeout) {
					t.Fatalf("Silent(%v, %v) = %t, the model has %+v", id, at, got, s)
				}
			},
			"wait": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.Int64Range(0, int64(4*time.Second)).Draw(t, "wait")))
			},
			"expired": func(t *rapid.T) {
				got := tr.Expired(now)
				if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
					t.Fatalf("expired %v: not sorted, or with duplicates", got)
				}
				for _, id := range slices.Sorted(maps.Keys(model)) {
					s, returned := model[id], slices.Contains(got, id)
					silent := now.Sub(s.heard)
					switch {
					case returned && s.closing:
						t.Fatalf("%v: returned twice", id)
					case returned && silent <= s.timeout:
						t.Fatalf("%v: returned after %v, timeout %v", id, silent, s.timeout)
					case !returned && !s.closing && (s.retried || silent >= s.timeout+tick):
						t.Fatalf("%v: not returned after %v, timeout %v, tick %v", id, silent, s.timeout, tick)
					}
					if returned {
						s.closing, s.retried = true, false
					}
				}
				for _, id := range got {
					if model[id] == nil {
						t.Fatalf("returned the unknown session %v", id)
					}
				}
			},
			"": func(t *rapid.T) { checkBuckets(t, tr.Buckets(), model, tick) },
		})
	})
}

// checkBuckets requires that each session that is not closing is in exactly one bucket, within the
// bounds, and that buckets and sessions are sorted.
func checkBuckets(t *rapid.T, buckets []session.Bucket, model map[proto.SessionID]*alive, tick time.Duration) {
	seen := make(map[proto.SessionID]bool)
	for i, b := range buckets {
		if len(b.IDs) == 0 || !slices.IsSorted(b.IDs) || i > 0 && !buckets[i-1].At.Before(b.At) || b.At.UnixNano()%int64(tick) != 0 {
			t.Fatalf("bucket %d of %v: empty, out of order, or not at a tick", i, buckets)
		}
		for _, id := range b.IDs {
			s := model[id]
			if s == nil || s.closing || seen[id] {
				t.Fatalf("buckets %v: %v is closing, unknown, or listed twice", buckets, id)
			}
			seen[id] = true
			if life := b.At.Sub(s.heard); life <= s.timeout || life > s.timeout+tick {
				t.Fatalf("%v lives %v after it was heard, timeout %v, tick %v", id, life, s.timeout, tick)
			}
		}
	}
	for id, s := range model {
		if !s.closing && !seen[id] {
			t.Fatalf("%v is in no bucket", id)
		}
	}
}

func TestTouch_DoesNotAllocate(t *testing.T) {
	tr, now := session.New(tick), start
	for id := range proto.SessionID(100) {
		tr.Add(id, 10*time.Second, now)
	}
	id := proto.SessionID(0)
	if n := testing.AllocsPerRun(10_000, func() {
		now = now.Add(30 * time.Millisecond)
		id = (id + 1) % 100
		tr.Touch(id, now)
	}); n != 0 {
		t.Fatalf("%v allocations per touch", n)
	}
}

func BenchmarkTouch(b *testing.B) {
	const n = 100_000
	tr, now := session.New(tick), start
	for id := range proto.SessionID(n) {
		tr.Add(id, 10*time.Second, now)
	}
	b.ReportAllocs()
	id := proto.SessionID(0)
	for b.Loop() {
		now = now.Add(20 * time.Microsecond) // each session is touched every 2 s
		id = (id + 1) % n
		tr.Touch(id, now)
	}
}

// BenchmarkExpired calls Expired once per tick while no session has expired.
func BenchmarkExpired(b *testing.B) {
	tr := session.New(tick)
	for id := range proto.SessionID(100_000) {
		tr.Add(id, time.Duration(4+id%37)*time.Second, start)
	}
	b.ReportAllocs()
	for b.Loop() {
		if got := tr.Expired(start); got != nil {
			b.Fatalf("expired %v", got)
		}
	}
}

// Lost time counts for no session, but nobody is heard from in the future, and a session that is
// closing is not put back.
func TestGiveBack(t *testing.T) {
	tr := session.New(tick)
	for id := range proto.SessionID(3) {
		tr.Add(id+1, 4*time.Second, start.Add(-time.Duration(id)*3*time.Second))
	}
	now := start.Add(2 * time.Second)
	if got := tr.Expired(now); !slices.Equal(got, []proto.SessionID{3}) {
		t.Fatalf("expired %v, want 3 alone", got)
	}
	tr.GiveBack(3*time.Second, now) // 1 counts as heard from now, 2 as heard from 2 s ago
	for _, c := range []struct {
		after time.Duration
		want  []proto.SessionID
	}{{2*time.Second - 1, []proto.SessionID{3}}, {2 * time.Second, []proto.SessionID{2, 3}}, {4*time.Second - 1, []proto.SessionID{2, 3}}, {4 * time.Second, []proto.SessionID{1, 2, 3}}} {
		if got := tr.Due(now.Add(c.after)); !slices.Equal(got, c.want) {
			t.Errorf("after %v more: due %v, want %v", c.after, got, c.want)
		}
	}
	if got := tr.Expired(now.Add(time.Hour)); !slices.Equal(got, []proto.SessionID{1, 2}) {
		t.Errorf("expired %v, want 1 and 2", got)
	}
}

func TestDue_ToTheInstant(t *testing.T) {
	tr := session.New(tick)
	tr.Add(2, 4*time.Second, start)
	tr.Add(1, 5*time.Second, start)
	tr.Add(3, time.Hour, start)
	for _, c := range []struct {
		after time.Duration
		want  []proto.SessionID
	}{{4*time.Second - 1, nil}, {4 * time.Second, []proto.SessionID{2}}, {5 * time.Second, []proto.SessionID{1, 2}}} {
		if got := tr.Due(start.Add(c.after)); !slices.Equal(got, c.want) {
			t.Errorf("after %v: %v, want %v", c.after, got, c.want)
		}
	}
	tr.Expired(start.Add(time.Minute))
	if got := tr.Due(start); !slices.Equal(got, []proto.SessionID{1, 2}) {
		t.Errorf("closing: %v", got)
	}
	tr.Touch(1, start.Add(time.Second))
	tr.Remove(2)
	if got := tr.Due(start); len(got) != 0 {
		t.Errorf("put back, and removed: %v", got)
	}
	for id := range proto.SessionID(20) {
		tr.Add(100-id, time.Hour, start)
	}
	if got := tr.Due(start.Add(time.Hour)); !slices.IsSorted(got) || len(got) < 20 {
		t.Errorf("not sorted: %v", got)
	}
}

// A tick that is not positive is a mistake of the program.
func TestNew_TicksArePositive(t *testing.T) {
	for tick, want := range map[time.Duration]bool{-1: true, 0: true, 1: false} {
		func() {
			defer func() {
				if got := recover() != nil; got != want {
					t.Errorf("a tick of %v: panics %v", tick, got)
				}
			}()
			session.New(tick)
		}()
	}
}
