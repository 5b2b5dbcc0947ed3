package fair_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/internal/fair"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

func TestMain(m *testing.M) { watchdog.Watch(m).Run() }

func TestRate(t *testing.T) {
	now := time.Unix(0, 0)
	r := fair.NewRate(500*time.Millisecond, 3, 10)
	allowed := func(key string) bool {
		wait, _ := r.Take(key, now)
		return wait == 0
	}
	for range 3 {
		if !allowed("a") {
			t.Fatal("an event of the burst was refused")
		}
	}
	if wait, _ := r.Take("a", now); wait != 500*time.Millisecond {
		t.Errorf("the fourth event waits %v", wait)
	}
	if !allowed("b") {
		t.Error("keys share a bound")
	}
	if r.Wait("a", now) == 0 {
		t.Error("Wait allows what Take refuses")
	}
	now = now.Add(500 * time.Millisecond)
	if r.Wait("a", now) != 0 {
		t.Error("an event is refused after its time")
	}
	if wait, refused := r.Take("a", now); wait != 0 || refused != 1 {
		t.Errorf("the next event waits %v, and knows of %d refused ones", wait, refused)
	}
	if allowed("a") {
		t.Error("two events in one interval")
	}
	r.Give("a", now)
	if !allowed("a") {
		t.Error("an event that was given back counts")
	}
	now = now.Add(-time.Hour) // the clock was set back
	if allowed("a") {
		t.Error("an event from the past")
	}
	now = now.Add(time.Second)
	if !allowed("a") {
		t.Error("a clock that was set back stops all events until it is where it was")
	}
	now = now.Add(100 * time.Hour)
	for range 3 {
		allowed("a")
	}
	if allowed("a") {
		t.Error("a long rest allows more than the burst")
	}
}

// Whenever somebody takes and gives, a window of any length has at most the burst and one event per
// interval.
func TestRate_NoWindowHasMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const interval = 10 * time.Millisecond
		burst := rapid.IntRange(1, 5).Draw(t, "burst")
		r, now := fair.NewRate(interval, burst, 4), time.Unix(0, 0)
		var at []time.Time
		for range 60 {
			now = now.Add(time.Duration(rapid.IntRange(0, 25).Draw(t, "ms")) * time.Millisecond)
			expected := r.Wait("a", now)
			wait, _ := r.Take("a", now)
			if wait != expected {
				t.Fatalf("Wait says %v, Take %v", expected, wait)
			}
			if wait > 0 {
				continue
			}
			at = append(at, now)
			for i := range at {
				if n, most := len(at)-i, burst+int(now.Sub(at[i])/interval); n > most {
					t.Fatalf("%d events in %v, allowed are %d", n, now.Sub(at[i]), most)
				}
			}
		}
	})
}

// Half as many keys as were asked for are remembered, whatever other keys come.
func TestRate_RemembersLatestKeys(t *testing.T) {
	now := time.Unix(0, 0)
	r := fair.NewRate(time.Hour, 1, 20)
	r.Take("a", now)
	for i := range 10 {
		if wait, _ := r.Take("a", now); wait == 0 {
			t.Fatalf("forgotten after %d keys", i)
		}
		r.Take(fmt.Sprint(i), now)
	}
	if wait, _ := r.Take("a", now); wait == 0 {
		t.Error("forgotten after 10 keys")
	}
}

// New keys are no way around a shared rate, and do not disturb the first ones.
func TestRate_Shared(t *testing.T) {
	now := time.Unix(0, 0)
	r := fair.NewSharedRate(time.Hour, 2, 10)
	allowed := 0
	for i := range 1000 {
		if wait, _ := r.Take(fmt.Sprint(i), now); wait == 0 {
			allowed++
		}
	}
	if allowed != 10+2 {
		t.Errorf("%d events of new keys, want those of 10 keys and 2 of all others", allowed)
	}
	if wait, _ := r.Take("3", now); wait != 0 {
		t.Error("the second event of a known key is refused")
	}
}

func TestGauge(t *testing.T) {
	g := fair.NewGauge(2, 3)
	leave, _ := g.Enter("a")
	g.Enter("a")
	if _, ok := g.Enter("a"); ok {
		t.Error("a third of one key")
	}
	g.Enter("b")
	if _, ok := g.Enter("b"); ok || g.Len() != 3 {
		t.Error("a fourth in all")
	}
	leave()
	if _, ok := g.Enter("c"); !ok {
		t.Error("no room after one has left")
	}
}

// Whoever comes and goes, there are at most as many callers as there is room for, and only a host
// with at least as many callers as any other loses one, its first.
func TestPlaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p fair.Places[int]
		room := rapid.IntRange(0, 6).Draw(t, "room")
		var there []int // in order
		host := func(v int) string { return fmt.Sprint(v % 3) }
		count := func(h string) (n int) {
			for _, v := range there {
				if host(v) == h {
					n++
				}
			}
			return n
		}
		remove := func(v int) {
			there = slices.DeleteFunc(there, func(other int) bool { return other == v })
		}
		for range 40 {
			if len(there) > 0 && rapid.Bool().Draw(t, "leaves") {
				v := rapid.SampledFrom(there).Draw(t, "who leaves")
				p.Leave(v)
				remove(v)
				continue
			}
			v := rapid.IntRange(0, 1<<30).Draw(t, "who comes")
			if slices.Contains(there, v) {
				continue
			}
			there = append(there, v)
			out, full := p.Enter(v, host(v), room)
			if full != (len(there) > room) {
				t.Fatalf("%d callers, room for %d: full is %v", len(there), room, full)
			}
			if !full {
				continue
			}
			for _, other := range there {
				if count(host(other)) > count(host(out)) {
					t.Fatalf("host %s loses a caller, host %s has more", host(out), host(other))
				}
				if host(other) == host(out) {
					if other != out {
						t.Fatalf("%d goes, %d came before it", out, other)
					}
					break
				}
			}
			remove(out)
		}
		if p.Len() != len(there) {
			t.Errorf("%d callers, want %d", p.Len(), len(there))
		}
		for _, h := range []string{"0", "1", "2"} {
			if p.OfHost(h) != count(h) {
				t.Errorf("%d callers of host %s, want %d", p.OfHost(h), h, count(h))
			}
		}
	})
}

func TestHost(t *testing.T) {
	for s, want := range map[string]string{
		"10.0.0.1:5": "10.0.0.1/32", "[::ffff:10.0.0.1]:5": "10.0.0.1/32", "[2001:db8::7:1]:5": "2001:db8::/64",
		"[fe80::1%eth0]:5": "fe80::/64", "m1:2888": "m1", "pipe": "pipe",
	} {
		if got := fair.Host(memoryAddr(s)); got != want {
			t.Errorf("the host of %s is %q, want %q", s, got, want)
		}
	}
}

type memoryAddr string

func (memoryAddr) Network() string  { return "memory" }
func (a memoryAddr) String() string { return string(a) }
