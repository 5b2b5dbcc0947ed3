package server

import (
	"fmt"
	"testing"
	"time"
)

func TestConnThrottle_Tokens(t *testing.T) {
	cfg := ConnectionThrottle{Tokens: 3, FillTime: 10 * time.Millisecond, FillCount: 2}
	cfg.ensureDefaults()
	var b connectBucket
	now := time.Unix(1, 0)
	admitted := func(n int) (ok int) {
		for range n {
			if yes, _, _ := b.admit(&cfg, false, false, now, 0); yes {
				ok++
			}
		}
		return ok
	}
	if n := admitted(10); n != 3 {
		t.Errorf("%d of 10 at once, with 3 tokens", n)
	}
	now = now.Add(10 * time.Millisecond)
	if n := admitted(10); n != 0 {
		t.Errorf("%d after the fill time, not more", n)
	}
	now = now.Add(5 * time.Millisecond) // 15 in all
	if n := admitted(10); n != 3 {
		t.Errorf("%d after 1.5 times the fill time", n)
	}
	now = now.Add(time.Hour)
	if n := admitted(10); n != 3 {
		t.Errorf("%d after an hour", n)
	}
	cfg.Tokens = 5 // the 3 missing tokens stay missing
	if n := admitted(10); n != 2 {
		t.Errorf("%d after a reload", n)
	}
	cfg.Tokens = 0
	if n := admitted(100); n != 100 {
		t.Errorf("%d of 100 without a throttle", n)
	}
}

// With weights, the tokens are those of new global sessions.
func TestConnThrottle_Weights(t *testing.T) {
	cfg := ConnectionThrottle{Tokens: 2, FillTime: time.Hour, Weighted: true}
	cfg.ensureDefaults()
	var b connectBucket
	now := time.Unix(1, 0)
	for i, c := range []struct {
		renew, local, ok bool
		missing          int
	}{{false, false, true, 3}, {true, false, true, 5}, {true, true, false, 5}, {false, false, false, 5}, {false, true, true, 6}, {false, true, false, 6}} {
		if ok, _, missing := b.admit(&cfg, c.renew, c.local, now, 0); ok != c.ok || missing != c.missing {
			t.Errorf("request %d: %v, %d tokens are missing", i, ok, missing)
		}
	}
}

// While the bucket is empty, a growing share of the requests is dropped, and a shrinking share
// afterwards.
func TestConnThrottle_Freeze(t *testing.T) {
	cfg := ConnectionThrottle{
		Tokens: 1, FillTime: time.Second, FreezeTime: 10 * time.Millisecond, DropIncrease: 0.5, DropDecrease: 0.2,
	}
	cfg.ensureDefaults()
	var b connectBucket
	now := time.Unix(1, 0)
	step := func(after time.Duration, random float64) (bool, float64) {
		now = now.Add(after)
		ok, drop, _ := b.admit(&cfg, false, false, now, random)
		return ok, drop
	}
	for i, c := range []struct {
		after  time.Duration
		random float64
		ok     bool
		drop   float64
	}{
		{0, 0, true, 0},
		{5 * time.Millisecond, 0.9, false, 0},      // empty, and too early for a change
		{6 * time.Millisecond, 0.9, false, 0.5},    // empty
		{11 * time.Millisecond, 0.9, false, 1},     // dropped at random
		{11 * time.Millisecond, 0.99, false, 1},    // not above 1
		{2 * time.Second, 0.79, false, 0.8},        // full again
		{11 * time.Millisecond, 0.61, true, 0.6},   // luck
		{11 * time.Millisecond, 0.999, false, 1.0}, // empty: 0.6 + 0.5
	} {
		if ok, drop := step(c.after, c.random); ok != c.ok || drop-c.drop > 1e-9 || c.drop-drop > 1e-9 {
			t.Errorf("step %d: %v, a share of %v is dropped", i, ok, drop)
		}
	}
}

// Requests take tokens, are dropped if there are too few, and are dropped at random by a share that
// grows while the bucket is empty and shrinks while it is nearly full.
func TestConnThrottle_Admits(t *testing.T) {
	begin := time.Unix(1000, 0)
	r := ConnectionThrottle{Tokens: 10, FillCount: 2, FillTime: time.Second, Weighted: true, GlobalWeight: 1}
	steps := func(r ConnectionThrottle, steps ...string) {
		t.Helper()
		var b connectBucket
		for i, step := range steps {
			var ms, tokens int
			var random float64
			var want string
			if n, err := fmt.Sscanf(step, "%d %d %g %s", &ms, &tokens, &random, &want); n != 4 {
				t.Fatal(step, err)
			}
			if want == "smaller" {
				r.Tokens = tokens
				continue
			}
			r.RenewWeight = tokens
			ok, drop, missing := b.admit(&r, true, false, begin.Add(time.Duration(ms)*time.Millisecond), random)
			if got := fmt.Sprintf("%v/%.2g/%d", ok, drop, missing); got != want {
				t.Errorf("step %d, %s: %s", i, step, got)
			}
		}
	}
	steps(r, "0 4 0 true/0/4", "0 6 0 true/0/10", "0 1 0 false/0/10", "1000 1 0 false/0/10", "1001 1 0 true/0/9", "1001 2 0 false/0/9",
		"1001 1 0 true/0/10", "2001 1 0 false/0/10", "2002 2 0 true/0/10", "9000 3 0 true/0/3", "9000 3 0 smaller", "9000 1 0 false/0/3",
		"9000 2 0 smaller", "9000 1 0 false/0/2", "10001 2 0 true/0/2")
	r.FreezeTime, r.DropIncrease, r.DropDecrease, r.DecreaseRatio = time.Second, 0.4, 0.3, 0.5
	steps(r, "0 10 0 true/0/10", "1000 1 0 false/0/10", "1001 1 0.3 true/0/9", "1001 1 0.3 true/0/10",
		"2002 1 0.5 true/0/9", "2002 1 0.5 true/0/10", "2500 1 0.5 false/0/10", "3004 1 0.5 true/0/9")
	r.FillCount = 0 // only what is taken counts
	steps(r, "0 10 0 true/0/10", "1001 1 0.9 false/0.4/10", "1001 1 0.3 false/0.4/10", "2001 1 0.9 false/0.4/10", "2002 1 0.9 false/0.8/10",
		"3003 1 0.99 false/1/10", "4004 1 0.99 false/1/10")
	steps(r, "0 5 0.9 true/0/5", "1001 5 0.9 true/0/10", "2002 1 0.9 false/0.4/10", "2002 20 0 smaller", "3003 1 0.9 true/0.1/11",
		"4004 1 0.9 true/0.1/12", "4004 30 0 smaller", "5005 1 0.9 true/0/13", "6006 1 0 true/0/14")
	var b connectBucket
	none := ConnectionThrottle{}
	if ok, drop, missing := b.admit(&none, true, false, begin, 0); !ok || drop != 0 || missing != 0 {
		t.Error("a request is dropped without a bound")
	}
}
