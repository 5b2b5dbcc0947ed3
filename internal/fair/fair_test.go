package fair_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
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

// Whoever waits for room gets it when there is some, at most as many at a time as the bounds allow,
// or gives up when its context ends.
func TestGauge_Await(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := fair.NewGauge(2, 3)
		most := map[string]int{}
		var mu sync.Mutex
		var all sync.WaitGroup
		for i := range 30 {
			key := string(rune('a' + i%3))
			all.Go(func() {
				leave, ok := g.Await(t.Context(), key)
				if !ok {
					t.Error("gave up")
				}
				mu.Lock()
				most[key]++
				if n := g.Len(); n > 3 || most[key] > 2 {
					t.Errorf("%d at a time, %d of %s", n, most[key], key)
				}
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				most[key]--
				mu.Unlock()
				leave()
			})
		}
		began := time.Now()
		all.Wait()
		if took := time.Since(began); took < 10*time.Second || took > 12*time.Second { // three at a time, or two of the last key
			t.Errorf("30 seconds of work take %v", took)
		}
		for range 3 {
			g.Enter(t.Name())
			g.Enter("another")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, ok := g.Await(ctx, "b"); ok || g.Len() != 3 {
			t.Errorf("%d at a time", g.Len())
		}
	})
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

// A bucket is compared with a list of what was taken: in no window is more taken than fits and
// comes in meanwhile, what is owed included, and nobody waits longer than needed for that.
func TestBucket_Model(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := fair.Limit{Size: float64(rapid.IntRange(1, 20).Draw(t, "size")), PerSecond: 1000}
		type taking struct {
			at     time.Time
			tokens float64
		}
		var b fair.Bucket
		var all []taking
		now := time.Unix(0, 0)
		most := func(end time.Time) (over float64) { // above the bound, in the window that is worst
			sum := 0.0
			for i := len(all) - 1; i >= 0; i-- {
				sum += all[i].tokens
				over = max(over, sum-l.Size-float64(end.Sub(all[i].at).Milliseconds()))
			}
			return over
		}
		for range 40 {
			now = now.Add(time.Duration(rapid.IntRange(0, 30).Draw(t, "ms")) * time.Millisecond)
			tokens := float64(rapid.IntRange(1, int(l.Size)).Draw(t, "tokens"))
			wait := b.Wait(l, tokens, now)
			all = append(all, taking{now.Add(wait), tokens})
			if over := most(now.Add(wait)); over > 1e-6 {
				t.Fatalf("%v tokens more than allowed", over)
			}
			if over := most(now.Add(wait - time.Millisecond)); wait > 0 && over <= 0 {
				t.Fatalf("a wait of %v is too long", wait)
			}
			all[len(all)-1].at = now
			if wait > 0 && rapid.Bool().Draw(t, "gives up") {
				all = all[:len(all)-1]
				continue
			}
			now = now.Add(wait)
			all[len(all)-1].at = now
			b.Take(tokens)
			if missing := b.Missing(l, now); missing < 0 || missing > l.Size+1e-6 {
				t.Fatalf("%v of %v tokens are missing", missing, l.Size)
			}
		}
	})
}

// Callers that read the clock before others took the bucket add no time twice, not even a caller
// that comes again and again.
func TestBucket_LateCallers(t *testing.T) {
	var b fair.Bucket
	begin, l, granted := time.Unix(0, 0), fair.Limit{Size: 1000, PerSecond: 1000}, 0
	for ms := range 1001 {
		for _, late := range []int{0, 10, ms / 2, 0} {
			for now := begin.Add(time.Duration(ms-late) * time.Millisecond); b.Wait(l, 1, now) == 0; granted++ {
				b.Take(1)
			}
		}
	}
	if granted != 2000 {
		t.Errorf("in the first second %d tokens are taken, want 1000 and 1000", granted)
	}
}

// A bucket that owes tokens pays them back before others get any, and its limit may change.
func TestBucket_Debt(t *testing.T) {
	var b fair.Bucket
	now, l := time.Unix(0, 0), fair.Limit{Size: 10, PerSecond: 10}
	b.Missing(l, now)
	b.Take(35)
	if wait := b.Wait(l, 5, now); wait != 3*time.Second {
		t.Errorf("35 of 10 tokens were taken, 5 more come in %v", wait)
	}
	now = now.Add(time.Second)
	b.Missing(l, now)
	if wait := b.Wait(fair.Limit{Size: 100, PerSecond: 100}, 80, now); wait != 50*time.Millisecond {
		t.Errorf("25 of 100 tokens are missing, 80 are there in %v", wait)
	}
	b.Take(-30)
	if missing := b.Missing(l, now); missing != 0 {
		t.Errorf("more was given back than was missing: %v", missing)
	}
}

// A clock that was set back by at least a minute begins anew, by less it counts as late.
func TestBucket_SetBack(t *testing.T) {
	for back, want := range map[time.Duration]float64{time.Minute: 5 - 1, time.Hour: 5 - 1, time.Minute - 1: 5} {
		var b fair.Bucket
		begin, l := time.Unix(10000, 0), fair.Limit{Size: 10, PerSecond: 1}
		b.Missing(l, begin)
		b.Take(5)
		if got := b.Missing(l, begin.Add(-back)); got != 5 {
			t.Errorf("set back by %v: %v are missing at once", back, got)
		}
		if got := b.Missing(l, begin.Add(-back).Add(time.Second)); got != want {
			t.Errorf("set back by %v: %v are missing a second later, want %v", back, got, want)
		}
	}
	var b fair.Bucket
	if wait := b.Wait(fair.Limit{}, 1, time.Unix(0, 0)); wait < time.Hour {
		t.Errorf("tokens that never come are waited for for %v", wait)
	}
}

// Refused events are counted until the next one is allowed, and Give, too, knows a key that was not
// used lately.
func TestRate_CountsRefused(t *testing.T) {
	now := time.Unix(0, 0)
	for _, keys := range []int{0, 1, 2} { // at least one is remembered
		r := fair.NewRate(time.Hour, 1, keys)
		for i := range 4 {
			wait, refused := r.Take("a", now)
			if (wait == 0) != (i == 0) || refused != 0 {
				t.Errorf("event %d waits %v, %d were refused", i, wait, refused)
			}
		}
		r.Take("b", now) // "a" is old
		r.Give("a", now)
		if wait, refused := r.Take("a", now); wait != 0 || refused != 3 {
			t.Errorf("%d keys: an event that was given back does not count: wait %v, %d were refused", keys, wait, refused)
		}
		if wait, refused := r.Take("a", now.Add(time.Hour)); wait != 0 || refused != 0 {
			t.Errorf("an hour later: wait %v, %d were refused", wait, refused)
		}
		r.Take("c", now)
		r.Take("d", now)
		if wait := r.Wait("a", now.Add(time.Hour)); wait != 0 {
			t.Errorf("%d keys: a key is remembered after two others", keys)
		}
	}
}
