package server

import (
	"testing"
	"time"

	"github.com/gozkd/gozkd/server/internal/bounds"
)

// connThrottle is the bucket of a ConnectionThrottle.
type connThrottle struct{ bounds.Bucket }

func (b *connThrottle) admit(cfg *ConnectionThrottle, renew, local bool, now time.Time, random float64) (bool, float64, int) {
	r, tokens := cfg.rate(renew, local)
	return b.Admit(r, tokens, now, random)
}

func TestConnThrottle_Tokens(t *testing.T) {
	cfg := ConnectionThrottle{Tokens: 3, FillTime: 10 * time.Millisecond, FillCount: 2}
	cfg.ensureDefaults()
	var b connThrottle
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
	var b connThrottle
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
	var b connThrottle
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
