package consensus

import (
	"time"

	"github.com/gozkd/gozkd/consensus/internal/core"
)

// MaxRestTicks is the most ticks that a node at rest sleeps through.
const MaxRestTicks = core.ElectionTicks

// tickClock counts ticks for the loop, which may sleep through several of them.
//
// At most as many ticks as the loop wanted to sleep through are counted at once. More have passed
// only if the loop or the process stood still: then what the other members have sent in that time
// is not read yet, and must not look like silence.
type tickClock struct {
	period  time.Duration
	timer   *time.Timer
	counted time.Time // ticks up to this moment are counted
	most    int       // ticks until the timer fires
	armed   bool      // no tick was counted since the timer was set
}

func newTickClock(period time.Duration) *tickClock {
	return &tickClock{period: period, timer: time.NewTimer(time.Hour), counted: time.Now(), most: 1}
}

// sleep makes the timer fire when that many ticks have passed since the last counted tick.
func (c *tickClock) sleep(ticks int) {
	if c.armed && ticks == c.most {
		return
	}
	c.armed, c.most = true, ticks
	c.timer.Reset(time.Until(c.counted.Add(time.Duration(ticks) * c.period)))
}

// passed returns the number of ticks since the last call.
func (c *tickClock) passed() int {
	ticks := int(time.Since(c.counted) / c.period)
	if ticks == 0 {
		return 0
	}
	// A late tick does not put off the next.
	c.counted, c.armed = c.counted.Add(time.Duration(ticks)*c.period), false
	return min(ticks, c.most)
}
