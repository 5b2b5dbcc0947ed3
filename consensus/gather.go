package consensus

import (
	"sync/atomic"
	"time"
)

// gather spares the loop of a leader the wake-ups for requests that would only wait. See core.gathering.
//
// Invariant: a request is looked at when gatherTime has passed since it came, or as soon as it may go on if that is sooner. Who adds one to the inbox without a
// signal has read, afterwards, that the loop gathers. The loop says what it does before it looks whether the inbox is empty; so if what was read
// is of an earlier turn, the loop has not looked yet. Else it may be in its sleep, and the timer runs: whoever comes first starts it. For
// those that the loop took out of the inbox already the loop starts it itself. Each turn looks, so it does no harm that it starts the timer anew.
type gather struct {
	state atomic.Int32
	timer *time.Timer // wakes the loop. A time that has passed, of no use any more, costs a turn of the loop
}

const (
	notGathering   = iota
	gathering      // and the timer need not run
	gatheringTimed // and it runs, or is about to be started
)

// init: wake wakes the loop. It must not block.
func (g *gather) init(wake func()) {
	g.timer = time.AfterFunc(time.Hour, wake)
	g.timer.Stop()
}

// waits reports whether somebody who has added a request may leave it at that. It is for any goroutine.
func (g *gather) waits() bool {
	switch g.state.Load() {
	case notGathering:
		return false
	case gathering:
		if g.state.CompareAndSwap(gathering, gatheringTimed) {
			g.timer.Reset(gatherTime)
		}
	}
	return true
}

// turn is told by the loop what core.gathering says.
func (g *gather) turn(gathers bool, after time.Duration) {
	switch {
	case !gathers:
		g.state.Store(notGathering)
	case after == 0:
		g.state.Store(gathering)
	default:
		g.state.Store(gatheringTimed)
		g.timer.Reset(after)
	}
}

// end: the loop has ended, and nobody gathers any more. The timer may still wake it once, if somebody is in waits.
func (g *gather) end() {
	g.state.Store(notGathering)
	g.timer.Stop()
}
