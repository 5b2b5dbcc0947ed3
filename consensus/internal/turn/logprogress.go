package turn

import "github.com/gozkd/gozkd/consensus/internal/core"

// logProgress notices when the log hangs: something is awaited, and nothing has become durable for
// an election timeout.
//
// A slow disk does not hang, even if each of its writes takes longer than that. If such disks
// counted as hanging, an ensemble in which all disks are slow would pass leadership around. So the
// limit is twice the time of the slowest recent write, up to maxLimit.
type logProgress struct {
	awaited int // responses of appends that are not durable yet
	ticks   int // since the last progress, or since the log was idle
	slowest int // ticks that the slowest recent write took; less with each later write
}

// maxLimit is the longest time, in ticks, after which the log hangs.
const maxLimit = 4 * core.ElectionTicks

// tick counts a tick, and reports whether the log hangs.
func (p *logProgress) tick() (stalled bool) {
	if p.awaited == 0 { // since the last progress
		return false
	}
	p.ticks++
	return p.ticks > min(max(core.ElectionTicks, 2*p.slowest), maxLimit)
}

// durable notes appends that have become durable, with that many responses.
func (p *logProgress) durable(responses int) {
	p.awaited -= responses
	p.slowest = max(p.ticks, p.slowest*3/4)
	p.ticks = 0
}
