package sim

import (
	"sync"
	"testing"
	"time"
	"unsafe"
)

// clock is the clock of a member. Its wall time may be stepped, as an operator or NTP does; its
// monotonic reading is always that of the bubble.
type clock struct {
	mu      sync.Mutex
	changed sync.Cond
	paused  bool
	step    time.Duration
	begun   time.Time
}

func newClock() *clock {
	c := &clock{begun: time.Now()}
	c.changed.L = &c.mu
	return c
}

// now blocks while the process is paused: a server does next to nothing without asking for the
// time.
func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.paused {
		c.changed.Wait()
	}
	return stepped(time.Now().Add(c.step), time.Since(c.begun))
}

func (c *clock) set(change func(*clock)) {
	c.mu.Lock()
	change(c)
	c.changed.Broadcast()
	c.mu.Unlock()
}

var unix1885 = time.Date(1885, 1, 1, 0, 0, 0, 0, time.UTC).Unix()

// stepped returns a time as time.Now would return it after a step of the wall clock. A time of a
// bubble has no monotonic reading, and package time can't make one.
func stepped(wall time.Time, monotonic time.Duration) (t time.Time) {
	const (
		hasMonotonic   = 1 << 63
		nanosecondBits = 30
	)
	// The fields of time.Time, as its comments document them: a flag, 33 bits of seconds since 1885
	// and 30 of nanoseconds; and nanoseconds since the start of the process.
	fields := (*struct {
		wall uint64
		ext  int64
		loc  *time.Location
	})(unsafe.Pointer(&t))
	fields.wall = hasMonotonic | uint64(wall.Unix()-unix1885)<<nanosecondBits | uint64(wall.Nanosecond())
	fields.ext = int64(monotonic)
	fields.loc = time.UTC
	return t
}

// A step changes the wall time alone.
func TestClock_StepsTheWallClock(t *testing.T) {
	at := time.Date(2000, 1, 2, 3, 4, 5, 6, time.UTC)
	a, b := stepped(at, time.Second), stepped(at.Add(-time.Hour), 3*time.Second)
	if !a.Round(0).Equal(at) || b.Sub(a) != 2*time.Second || b.Round(0).Sub(a.Round(0)) != -time.Hour {
		t.Errorf("%v and %v: %v apart", a, b, b.Sub(a))
	}
}
