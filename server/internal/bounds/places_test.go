package bounds

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// The frames of a host take places in the order of the calls of Take, and their bytes stay within
// the limit. A frame above the limit waits until it is alone.
func TestPlaces_InOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := Places{bytes: turns{limit: 100}}
		sizes, owners := []int{60, 50, 30, 100, 300, 1}, make([]closer, 6)
		for i, bytes := range sizes {
			go p.Take(bytes, &owners[i], time.Hour)
			synctest.Wait()
		}
		for i, want := range []struct{ taken, held int }{{1, 60}, {3, 80}, {3, 30}, {4, 100}, {5, 300}, {6, 1}, {6, 0}} {
			if len(p.arriving) != want.taken || p.Held() != want.held || p.Crowded() != (want.taken < len(sizes)) {
				t.Errorf("after %d of %v have ended: %d taken, %d bytes held, want %+v; crowded: %v", i, sizes, len(p.arriving), p.Held(), want, p.Crowded())
			}
			for a := range p.arriving {
				if !slices.Contains(sizes[:want.taken], a.Bytes) {
					t.Errorf("after %d of %v have ended: the place of %d bytes is taken", i, sizes, a.Bytes)
				}
			}
			if i < len(sizes) {
				p.bytes.release(sizes[i])
				synctest.Wait()
			}
		}
		for a := range p.arriving {
			if p.Accepted(a); a.owner != &owners[slices.Index(sizes, a.Bytes)] {
				t.Errorf("the place of %d bytes has the owner of another", a.Bytes)
			}
		}
		if len(p.arriving) != 0 {
			t.Errorf("%d places stay among those that arrive", len(p.arriving))
		}
	})
}

// Whoever waits for a place takes those of frames that do not arrive, and no others. Closed places
// have no limit.
func TestPlaces_Overdue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, start := Places{bytes: turns{limit: 100}}, time.Now()
		stops, arrives, third := &closer{start: start}, &closer{start: start}, &closer{}
		stopped, arrived := p.Take(50, stops, time.Minute), p.Take(50, arrives, time.Minute)
		time.Sleep(time.Hour)     // nobody waits
		arrives.waits = time.Hour // for its frame, which arrives now
		time.AfterFunc(time.Second, func() { arrived.Progress(true) })
		if stops.closed != 0 {
			t.Error("a sender is closed although nobody waits for its place")
		}
		time.AfterFunc(time.Hour, p.bytes.close) // otherwise Take might never return
		stops.then = func() { p.Accepted(stopped); p.bytes.release(50) }
		accepted := p.Take(20, third, time.Minute)
		if time.Since(start) != time.Hour+time.Minute/2 || stops.closed != time.Since(start) {
			t.Errorf("the place was free after %v, and closed after %v", time.Since(start), stops.closed)
		}
		if arrives.closed != 0 {
			t.Error("a sender is closed although its frame has arrived")
		}
		arrives.waits, arrives.then = time.Minute, func() { p.Accepted(arrived); p.bytes.release(50) }
		p.Accepted(accepted)
		p.Take(50, stops, time.Minute)
		if arrives.closed != time.Since(start) || arrives.closed != time.Hour+3*time.Minute/2 {
			t.Errorf("a sender that does not take its replies is closed after %v", arrives.closed)
		}
		go p.bytes.close()
		if p.Take(200, stops, time.Hour); p.Held() != 270 || time.Since(start) != time.Hour+3*time.Minute/2 {
			t.Errorf("closed places hold %d bytes after %v", p.Held(), time.Since(start))
		}
	})
}

// A frame that goes on has its place for patience from when another waits, and no longer.
func TestPlaces_Slow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, slow := Places{bytes: turns{limit: 100}}, &closer{start: time.Now()}
		place := p.Take(100, slow, time.Minute)
		time.AfterFunc(time.Hour, p.bytes.close) // otherwise Take might never return
		slow.then = func() { p.Accepted(place); p.bytes.release(100) }
		for at := 29 * time.Second; at < time.Hour; at += 29 * time.Second {
			time.AfterFunc(at, func() { place.Progress(false) })
		}
		if p.Take(1, &closer{}, time.Minute); slow.closed != time.Minute {
			t.Errorf("closed after %v", slow.closed)
		}
	})
}

// A frame that has arrived keeps its place until it is answered, if its sender takes the replies to
// its earlier requests meanwhile.
func TestPlaces_Answering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, taking := Places{bytes: turns{limit: 100}}, &closer{start: time.Now()}
		place := p.Take(100, taking, time.Minute)
		place.Progress(true)
		time.AfterFunc(time.Hour, func() { p.bytes.release(100) })
		if p.Take(1, &closer{}, time.Minute); taking.closed != 0 {
			t.Errorf("a sender whose frame waits for the server is closed after %v", taking.closed)
		}
	})
}

// The time for which the process stood still does not count against a frame: its bytes wait in the
// socket.
func TestPlaces_Standstill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		from, until := start.Add(time.Second), start.Add(time.Hour)
		p := Places{bytes: turns{limit: 100}, Lost: func(since, now time.Time) time.Duration {
			if since.Before(from) {
				since = from
			}
			if now.After(until) {
				now = until
			}
			return max(0, now.Sub(since))
		}}
		arrives, takesReplies := &closer{start: start}, &closer{start: start, waits: time.Hour}
		first, second := p.Take(50, arrives, time.Minute), p.Take(50, takesReplies, time.Minute)
		second.Progress(true)
		time.AfterFunc(time.Hour+20*time.Second, func() {
			for _, a := range []*Place{first, second} {
				a.Progress(true)
				p.Accepted(a)
				p.bytes.release(a.Bytes)
			}
		})
		if p.Take(100, &closer{}, time.Minute); arrives.closed+takesReplies.closed != 0 {
			t.Errorf("closed after %v and %v, although the process stood still", arrives.closed, takesReplies.closed)
		}
	})
}

// Hosts take turns: a host whose frames hold their places for long delays the next frame of another
// host by one of its own at most, however many wait.
func TestPlaces_HostsTakeTurns(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const release = ""
		steps := rapid.SliceOfN(rapid.SampledFrom([]string{release, "a", "b", "c"}), 1, 40).Draw(rt, "hosts of frames")
		type event struct {
			host  string
			takes bool // the place, or comes
		}
		var events []event
		synctest.Test(t, func(*testing.T) {
			p, came, taken := Places{bytes: turns{limit: 100}}, 0, 0
			for _, host := range append(steps, make([]string, len(steps))...) {
				switch {
				case host != release:
					came, events = came+1, append(events, event{host, false})
					go func() { // ends when all places before it were given back
						p.Take(100, &closer{host: host}, time.Hour)
						taken, events = taken+1, append(events, event{host, true})
					}()
				case p.Held() > 0:
					p.bytes.release(100)
				}
				synctest.Wait()
			}
			if taken != came || p.Held() != 0 || len(p.bytes.lines) != 0 || p.Crowded() {
				t.Errorf("%v: %d of %d frames took places, %d bytes are held, %d hosts wait", steps, taken, came, p.Held(), len(p.bytes.lines))
			}
		})
		waiting, delayed := map[string]int{}, map[string]map[string]int{} // the next frame of a host by those of another
		for _, e := range events {
			if !e.takes {
				if waiting[e.host]++; waiting[e.host] == 1 {
					delayed[e.host] = map[string]int{}
				}
				continue
			}
			waiting[e.host]--
			delayed[e.host] = map[string]int{}
			for host, by := range delayed {
				if by[e.host]++; host != e.host && waiting[host] > 0 && by[e.host] > 1 {
					rt.Fatalf("%v: the next frame of host %s waits for %d of host %s", events, host, by[e.host], e.host)
				}
			}
		}
	})
}

// closer notes when it is closed.
type closer struct {
	host   string
	start  time.Time
	closed time.Duration
	then   func()
	waits  time.Duration
	gone   bool
}

func (c *closer) Host() string         { return c.host }
func (c *closer) Waits() time.Duration { return c.waits }
func (c *closer) Gone() bool           { return c.gone }

func (c *closer) Close() {
	if c.closed = time.Since(c.start); c.then != nil {
		c.then()
	}
}

// A frame whose client is gone leaves its line, wherever it stands, and those behind it go on.
func TestPlaces_Gone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Places{bytes: turns{limit: 10}}
		p.Take(8, &closer{host: "other"}, time.Minute)
		var wg sync.WaitGroup
		got := make([]*Place, 4)
		for i, c := range []*closer{{host: "a", gone: true}, {host: "a"}, {host: "b", gone: true}, {host: "a", gone: true}} {
			wg.Go(func() { got[i] = p.Take([]int{5, 1, 5, 5}[i], c, time.Minute) })
			synctest.Wait()
		}
		time.Sleep(16 * time.Second) // a quarter of their patience
		synctest.Wait()
		if wg.Wait(); got[0] != nil || got[1] == nil || got[2] != nil || got[3] != nil || p.Crowded() || p.Held() != 9 || len(p.bytes.lines) != 0 {
			t.Errorf("places %v, %d bytes are held, and %d hosts wait", got, p.Held(), len(p.bytes.lines))
		}
	})
}
