package turn

import "github.com/gozkd/gozkd/consensus/internal/core"

// logProgress notices when the log hangs. A slow log does not hang: each append that becomes
// durable is progress.
type logProgress struct {
	awaited int // responses of appends that are not durable yet
	ticks   int // since the last progress, or since the log was idle
}

// tick counts a tick, and reports whether the log hangs: for an election timeout something was
// awaited, and nothing became durable.
func (p *logProgress) tick() (stalled bool) {
	if p.awaited == 0 {
		p.ticks = 0
		return false
	}
	p.ticks++
	return p.ticks > core.ElectionTicks
}

// durable notes appends that have become durable, with that many responses.
func (p *logProgress) durable(responses int) {
	p.awaited -= responses
	p.ticks = 0
}
