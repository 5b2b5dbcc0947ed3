package liveness

import "time"

// Passes tells which passes of a loop may judge sessions or report them. A Passes is not safe for
// concurrent use. Its times come from a clock that does not jump.
type Passes struct {
	interval time.Duration // between passes
	patience time.Duration // without progress, after which this server counts as unable to commit
	last     time.Time     // when the last pass began
	lost     time.Duration // by which the last pass was late; 0: it was in time
	stalled  bool          // nothing was committed for too long, as of the last call of CanCommit
}

// NewPasses returns the passes of a loop that begins now.
func NewPasses(interval, patience time.Duration, now time.Time) Passes {
	return Passes{interval: interval, patience: patience, last: now}
}

// Next begins a pass, and returns by how much it is late, or 0, and whether it may judge or report
// which sessions were heard. The lost time must count for no session.
func (p *Passes) Next(now time.Time) (lost time.Duration, judges bool) {
	wasLate := p.lost > 0
	lost = now.Sub(p.last) - p.interval
	if lost <= p.interval/4 {
		lost = 0
	}
	p.last, p.lost = now, lost
	return lost, lost == 0 || wasLate
}

// CanCommit reports whether this server, which leads, can commit, and so may judge sessions, and
// whether that has changed. progress is when something was last applied, or no request waited.
func (p *Passes) CanCommit(progress, now time.Time) (can, changed bool) {
	can = now.Sub(progress)-p.lost <= p.patience
	changed = can == p.stalled
	p.stalled = !can
	return can, changed
}
