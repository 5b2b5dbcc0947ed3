package bounds

import (
	"testing"
	"testing/synctest"
	"time"
)

// Places are taken in the order of the calls of Take, and their bytes stay within the limit. A
// frame above the limit waits until it is alone.
func TestPlaces_InOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := Places{limit: 100}
		sizes, owners := []int{60, 50, 30, 100, 300, 1}, make([]closer, 6)
		for i, bytes := range sizes {
			go p.Take(bytes, &owners[i], time.Hour)
			synctest.Wait()
		}
		for i, want := range []struct{ taken, held int }{{1, 60}, {3, 80}, {3, 30}, {4, 100}, {5, 300}, {6, 1}, {6, 0}} {
			if len(p.arriving) != want.taken || p.Held() != want.held {
				t.Errorf("after %d of %v have ended: %d taken, %d bytes held, want %+v", i, sizes, len(p.arriving), p.Held(), want)
			}
			if i < len(sizes) {
				p.Release(sizes[i])
				synctest.Wait()
			}
		}
		for i, a := range p.arriving {
			if a.owner != &owners[i] || a.bytes != sizes[i] {
				t.Errorf("the place of %d bytes was taken as number %d", a.bytes, i)
			}
		}
	})
}

// Whoever waits for a place takes those of frames that do not arrive, and no others. Closed places
// have no limit.
func TestPlaces_Overdue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, start := Places{limit: 100}, time.Now()
		stops, arrives, third := &closer{start: start}, &closer{start: start}, &closer{}
		p.Take(50, stops, time.Minute)
		p.Take(50, arrives, time.Minute)
		time.Sleep(time.Hour)     // nobody waits
		arrives.waits = time.Hour // for its frame, which arrives now
		time.AfterFunc(time.Second, func() { p.Arrived(arrives) })
		if stops.closed != 0 {
			t.Error("a sender is closed although nobody waits for its place")
		}
		time.AfterFunc(time.Hour, p.Close) // otherwise Take might never return
		stops.then = func() { p.Accepted(stops); p.Release(50) }
		if p.Take(20, third, time.Minute); time.Since(start) != time.Hour+time.Minute || stops.closed != time.Since(start) {
			t.Errorf("the place was free after %v, and closed after %v", time.Since(start), stops.closed)
		}
		if arrives.closed != 0 {
			t.Error("a sender is closed although its frame has arrived")
		}
		arrives.waits, arrives.then = time.Minute, func() { p.Accepted(arrives); p.Release(50) }
		p.Accepted(third)
		if p.Take(50, stops, time.Minute); arrives.closed != time.Since(start) || arrives.closed != time.Hour+2*time.Minute {
			t.Errorf("a sender that does not take its replies is closed after %v", arrives.closed)
		}
		go p.Close()
		if p.Take(200, stops, time.Hour); p.Held() != 270 || time.Since(start) != time.Hour+2*time.Minute {
			t.Errorf("closed places hold %d bytes after %v", p.Held(), time.Since(start))
		}
	})
}

// closer notes when it is closed.
type closer struct {
	start  time.Time
	closed time.Duration
	then   func()
	waits  time.Duration
}

func (c *closer) Waits() time.Duration { return c.waits }

func (c *closer) Close() {
	if c.closed = time.Since(c.start); c.then != nil {
		c.then()
	}
}
