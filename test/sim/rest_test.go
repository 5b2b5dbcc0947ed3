package sim

import (
	"math/rand/v2"
	"time"
)

// drawCalmPlan draws a plan in which times of rest, of a minute to half an hour with one fault or
// none, alternate with bursts of faults under load. The plan takes 6 to 24 times the given length.
func drawCalmPlan(seed uint64, length time.Duration, kinds []*fault) *plan {
	rng := rand.New(rand.NewPCG(seed, 3))
	p := drawPlan(seed, 0, nil)
	p.length = between(rng, 6*length, 24*length)
	p.pace = max(p.pace, 2*time.Second) // dense runs have the fastest clients, which cost the most
	for at, gap := time.Duration(0), time.Duration(0); at < p.length; {
		quiet := between(rng, time.Minute, pick(rng, 3*time.Minute, 10*time.Minute, 30*time.Minute))
		// A rest may outlast the quiet: then faults meet servers at rest.
		p.steps = append(p.steps, step{gap: gap, rest: quiet + between(rng, 0, pick(rng, 0, 3*time.Second, 20*time.Second)), idle: rng.IntN(3) > 0})
		at += quiet
		if len(kinds) == 0 {
			gap = quiet + time.Minute
			continue
		}
		if rng.IntN(2) == 0 { // a fault in the middle
			middle := between(rng, 0, quiet)
			p.drawFaults(rng, 1, kinds)
			p.steps[len(p.steps)-1].gap = middle
			quiet -= middle
		}
		first := len(p.steps)
		at += p.drawFaults(rng, between(rng, 1, 2*time.Minute), kinds)
		p.steps[first].gap += quiet
	}
	return p
}

// beginRest lets the clients rest: their sessions stay alive by pings, except those of movers and
// probes, which expire.
func (w *world) beginRest(s step) {
	w.logs.Info("REST", "lasts", s.rest.String(), "idle", s.idle)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.restUntil, w.restIdle = w.now()+s.rest, s.idle
	w.rested += s.rest
}

// restLeft returns how long clients rest from now on; not positive: they do not.
func (w *world) restLeft() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.restUntil - w.now()
}

// rest returns how long a client rests before its next operation: until the rest of all clients
// ends, or, so that requests come alone, for up to four minutes.
func (w *world) rest(rng *rand.Rand) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	left := w.restUntil - w.now()
	switch {
	case left <= 0:
		return 0
	case w.restIdle:
		return left + between(rng, 0, 2*time.Second)
	}
	return min(left, between(rng, 0, 4*time.Minute))
}

// noteQuiet notes whether a fault is at work.
func (w *world) noteQuiet(quiet bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.quietFrom = -1; quiet {
		w.quietFrom = w.now()
	}
}

// quietFor returns for how long no fault was at work.
func (w *world) quietFor() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.quietFrom < 0 {
		return 0
	}
	return w.now() - w.quietFrom
}
